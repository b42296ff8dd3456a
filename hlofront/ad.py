"""Values that `f_vjp.with_refs` takes and returns instead of cotangents."""

from hlofront.transforms.pullback import DidntWant as DidntWant
from hlofront.transforms.pullback import DontWant as DontWant
from hlofront.transforms.pullback import GradRef as GradRef
from hlofront.transforms.pullback import GradValue as GradValue
