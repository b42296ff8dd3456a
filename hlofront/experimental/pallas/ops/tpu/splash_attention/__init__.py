"""jax.experimental.pallas.ops.tpu.splash_attention: masked attention of several heads."""

from hlofront.nn.attention_masks import CausalMask as CausalMask
from hlofront.nn.attention_masks import FullMask as FullMask
from hlofront.nn.attention_masks import LocalMask as LocalMask
from hlofront.nn.attention_masks import Mask as Mask
from hlofront.nn.attention_masks import MultiHeadMask as MultiHeadMask
from hlofront.nn.attention_masks import NumpyMask as NumpyMask
from hlofront.nn.attention_masks import make_causal_mask as make_causal_mask
from hlofront.nn.attention_masks import make_local_attention_mask as make_local_attention_mask
from hlofront.nn.attention_masks import make_random_mask as make_random_mask
from hlofront.nn.splash_attention import BlockSizes as BlockSizes
from hlofront.nn.splash_attention import QKVLayout as QKVLayout
from hlofront.nn.splash_attention import SegmentIds as SegmentIds
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
