"""hlofront.ops: reductions of segments."""

from hlofront.numpy.statistics.segments import segment_max as segment_max
from hlofront.numpy.statistics.segments import segment_min as segment_min
from hlofront.numpy.statistics.segments import segment_prod as segment_prod
from hlofront.numpy.statistics.segments import segment_sum as segment_sum
