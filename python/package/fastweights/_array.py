"""The type of arrays in signatures."""

from typing import Any, Protocol, TypeVar


class SupportsDLPack(Protocol):
    """A numpy.ndarray, a torch.Tensor, or an array of another library."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


Array = TypeVar("Array", bound=SupportsDLPack)
