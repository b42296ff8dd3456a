"""The masks of splash attention."""

from hlofront.nn.attention_masks import CausalMask as CausalMask
from hlofront.nn.attention_masks import ChunkedCausalMask as ChunkedCausalMask
from hlofront.nn.attention_masks import FullMask as FullMask
from hlofront.nn.attention_masks import LocalMask as LocalMask
from hlofront.nn.attention_masks import LogicalAnd as LogicalAnd
from hlofront.nn.attention_masks import LogicalOr as LogicalOr
from hlofront.nn.attention_masks import Mask as Mask
from hlofront.nn.attention_masks import MultiHeadMask as MultiHeadMask
from hlofront.nn.attention_masks import NumpyMask as NumpyMask
from hlofront.nn.attention_masks import make_causal_mask as make_causal_mask
from hlofront.nn.attention_masks import make_chunk_attention_mask as make_chunk_attention_mask
from hlofront.nn.attention_masks import make_local_attention_mask as make_local_attention_mask
from hlofront.nn.attention_masks import make_random_mask as make_random_mask
