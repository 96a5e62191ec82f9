"""One step, many processes: `mgjit.distributed.data_parallel(step, comm)`."""

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
