"""Exact derivatives of NumPy code on the CPU.

`grad`, `jvp`, `hessian` and friends take functions written with plain NumPy; `EagerRuntime` and
`EagerTensor` record as they go and retain gradients; `tenferro.numpy` has NumPy's names for code
that builds arrays out of tracked values.
"""

from . import errors, numpy, testing
from .eager import EagerTensor
from .errors import (
    AnomalyError,
    AxisOutOfBoundsError,
    ContextMismatchError,
    DTypeMismatchError,
    DuplicateAxisError,
    HostAccessError,
    InvalidArgumentError,
    MutatedError,
    NonScalarGradError,
    NoRuleError,
    RankMismatchError,
    RuntimeStateError,
    ShapeDataLengthMismatchError,
    ShapeMismatchError,
    TenferroError,
    TracedConversionError,
    UnsupportedDTypeError,
    UntrackedError,
    ValidationError,
)
from .grad_store import GradStore
from .gradient import Gradients, GradientValue, ValueGuard
from .modes import enable_grad, no_grad
from .runtime import CpuBackend, EagerRuntime, default_runtime, tensor
from .tensor import Tensor, TensorRead
from .transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from .tree import register_container

__version__ = "0.1.0"

__all__ = [
    "AnomalyError",
    "AxisOutOfBoundsError",
    "ContextMismatchError",
    "CpuBackend",
    "DTypeMismatchError",
    "DuplicateAxisError",
    "EagerRuntime",
    "EagerTensor",
    "GradStore",
    "GradientValue",
    "Gradients",
    "HostAccessError",
    "InvalidArgumentError",
    "MutatedError",
    "NoRuleError",
    "NonScalarGradError",
    "RankMismatchError",
    "RuntimeStateError",
    "ShapeDataLengthMismatchError",
    "ShapeMismatchError",
    "TenferroError",
    "Tensor",
    "TensorRead",
    "TracedConversionError",
    "UnsupportedDTypeError",
    "UntrackedError",
    "ValidationError",
    "ValueGuard",
    "default_runtime",
    "enable_grad",
    "errors",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "no_grad",
    "numpy",
    "register_container",
    "tensor",
    "testing",
    "value_and_grad",
    "vjp",
]
