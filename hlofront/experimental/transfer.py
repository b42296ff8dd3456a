"""jax.experimental.transfer: arrays sent between processes that are in no group."""

from hlofront.runtime.processes.transfer import TransferConnection as TransferConnection
from hlofront.runtime.processes.transfer import TransferServer as TransferServer
from hlofront.runtime.processes.transfer import make_error_array as make_error_array
from hlofront.runtime.processes.transfer import start_transfer_server as start_transfer_server
