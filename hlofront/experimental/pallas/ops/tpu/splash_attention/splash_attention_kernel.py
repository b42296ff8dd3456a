"""The attention of several heads by a mask."""

from hlofront.nn.splash_attention import DEFAULT_MASK_VALUE as DEFAULT_MASK_VALUE
from hlofront.nn.splash_attention import BlockSizes as BlockSizes
from hlofront.nn.splash_attention import QKVLayout as QKVLayout
from hlofront.nn.splash_attention import SegmentIds as SegmentIds
from hlofront.nn.splash_attention import SplashAttentionKernel as SplashAttentionKernel
from hlofront.nn.splash_attention import attention_reference as attention_reference
from hlofront.nn.splash_attention import make_masked_mha_reference as make_masked_mha_reference
from hlofront.nn.splash_attention import make_masked_mqa_reference as make_masked_mqa_reference
from hlofront.nn.splash_attention import make_splash_mha as make_splash_mha
from hlofront.nn.splash_attention import (
    make_splash_mha_single_device as make_splash_mha_single_device,
)
from hlofront.nn.splash_attention import make_splash_mqa as make_splash_mqa
from hlofront.nn.splash_attention import (
    make_splash_mqa_single_device as make_splash_mqa_single_device,
)
