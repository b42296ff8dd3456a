"""The number of processes and the index of this one, from the environment variables of launchers.

Each row of ENVIRONMENTS is a launcher, with the page that documents its variables.
"""

import importlib
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

# Ports are chosen from this many above the first, by the number of the job, so that two jobs on one
# machine are unlikely to use the same one.
_FIRST_PORT, _PORTS = 61440, 4096


@dataclass(frozen=True, slots=True)
class ClusterEnvironment:
    """A launcher of processes, and how to read its environment variables.

    Attributes:
      name: what `cluster_detection_method` calls it.
      is_present: whether the variables are those of this launcher.
      coordinator: returns the address of process 0, "host:port".
      process_count, process_id: return the number of processes, and that of this one.
      local_id: returns the number of this process among those of its machine, or None.
      documented_at: the page that says what the variables mean.
      is_opt_in: whether it is used only if named.
    """

    name: str
    is_present: Callable[[Mapping[str, str]], bool]
    coordinator: Callable[[Mapping[str, str]], str]
    process_count: Callable[[Mapping[str, str]], int]
    process_id: Callable[[Mapping[str, str]], int]
    local_id: Callable[[Mapping[str, str]], int | None]
    documented_at: str
    is_opt_in: bool = False


def _port(job: str) -> int:
    digits = re.sub(r"\D", "", job)
    return _FIRST_PORT + (int(digits) if digits else sum(map(ord, job))) % _PORTS


# ---- Slurm ---------------------------------------------------------------------------------------


def first_host(node_list: str) -> str:
    """Return the first host of a node list of Slurm: "n[007-009,12],m1" is n007, ..."""
    head = re.match(r"([^\[,]*)(?:\[([^\],-]*)[^\]]*\])?", node_list)
    assert head is not None, "the pattern matches any text"
    return head.group(1) + (head.group(2) or "")


def _slurm_coordinator(variables: Mapping[str, str]) -> str:
    nodes = variables.get("SLURM_STEP_NODELIST") or variables["SLURM_JOB_NODELIST"]
    return f"{first_host(nodes)}:{_port(variables['SLURM_JOB_ID'])}"


# ---- Open MPI and mpi4py -------------------------------------------------------------------------


def _ompi_coordinator(variables: Mapping[str, str]) -> str:
    """Return the address of the launcher, from "123.0;tcp://10.0.0.1,10.0.0.2:34911"."""
    uri = variables["OMPI_MCA_orte_hnp_uri"]
    job, _, addresses = uri.partition(";")
    host = re.search(r"tcp6?://\[?([^,\]:]+(?::[^,\]]*:[^,\]]*)?)", addresses)
    if host is None:
        raise RuntimeError(f"OMPI_MCA_orte_hnp_uri names no TCP address: got {uri!r}")
    return f"{host.group(1)}:{_port(job)}"


def _mpi() -> Any:
    """Import mpi4py, which is optional."""
    return importlib.import_module("mpi4py.MPI")


def _mpi4py_coordinator(variables: Mapping[str, str]) -> str:
    world = _mpi().COMM_WORLD
    address = f"{socket.gethostname()}:{_port(str(os.getpid()))}" if world.Get_rank() == 0 else None
    return str(world.bcast(address, root=0))


def _mpi4py_local_id(variables: Mapping[str, str]) -> int:
    mpi = _mpi()
    return int(mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED).Get_rank())


# ---- Kubernetes ----------------------------------------------------------------------------------


def _job_of_kubernetes(variables: Mapping[str, str]) -> tuple[str, int]:
    """Return the address of the first pod of an indexed Job or JobSet, and the number of pods.

    The pod's own name is "<job>-<index>-<5 letters>", or "<job>-<index>" as a host name; the
    service of the job resolves "<job>-0.<service>".
    """
    count = variables.get("JAX_NUM_PROCESSES") or variables.get("JOB_COMPLETIONS")
    if count is None:
        raise RuntimeError(
            "Kubernetes gives pods their index, but not their number: set JAX_NUM_PROCESSES to "
            "the `completions` of the Job in its pod template, or pass num_processes"
        )
    host = variables["HOSTNAME"]
    index = variables["JOB_COMPLETION_INDEX"]
    job = host.rpartition(f"-{index}")[0]
    service = variables.get("JOBSET_NAME") or variables.get("JAX_KUBERNETES_SERVICE") or job
    return f"{job}-0.{service}:{_port(job)}", int(count)


# ---- Cloud TPU -----------------------------------------------------------------------------------


def _tpu_hosts(variables: Mapping[str, str]) -> list[str]:
    addresses = variables.get("TPU_PROCESS_ADDRESSES") or variables["TPU_WORKER_HOSTNAMES"]
    return [address.partition(":")[0] for address in addresses.split(",")]


def _tpu_coordinator(variables: Mapping[str, str]) -> str:
    if address := variables.get("MEGASCALE_COORDINATOR_ADDRESS"):
        return f"{address.partition(':')[0]}:{_FIRST_PORT}"
    return f"{_tpu_hosts(variables)[0]}:{_FIRST_PORT}"


def _tpu_count(variables: Mapping[str, str]) -> int:
    return len(_tpu_hosts(variables)) * int(variables.get("MEGASCALE_NUM_SLICES", "1"))


def _tpu_id(variables: Mapping[str, str]) -> int:
    slice_id = int(variables.get("MEGASCALE_SLICE_ID", "0"))
    return slice_id * len(_tpu_hosts(variables)) + int(variables["TPU_WORKER_ID"])


def _number(name: str) -> Callable[[Mapping[str, str]], int]:
    return lambda variables: int(variables[name])


def _none(variables: Mapping[str, str]) -> None:
    return None


ENVIRONMENTS: tuple[ClusterEnvironment, ...] = (
    ClusterEnvironment(
        "ompi",
        lambda variables: "OMPI_MCA_orte_hnp_uri" in variables,
        _ompi_coordinator,
        _number("OMPI_COMM_WORLD_SIZE"),
        _number("OMPI_COMM_WORLD_RANK"),
        _number("OMPI_COMM_WORLD_LOCAL_RANK"),
        "https://docs.open-mpi.org/en/v5.0.x/tuning-apps/environment-var.html",
    ),
    ClusterEnvironment(
        "slurm",
        lambda variables: {"SLURM_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS"} <= variables.keys(),
        _slurm_coordinator,
        _number("SLURM_NTASKS"),
        _number("SLURM_PROCID"),
        _number("SLURM_LOCALID"),
        "https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES",
    ),
    ClusterEnvironment(
        "mpi4py",
        lambda variables: find_spec("mpi4py") is not None,
        _mpi4py_coordinator,
        lambda variables: int(_mpi().COMM_WORLD.Get_size()),
        lambda variables: int(_mpi().COMM_WORLD.Get_rank()),
        _mpi4py_local_id,
        "https://mpi4py.readthedocs.io/en/stable/reference/mpi4py.MPI.Comm.html",
        is_opt_in=True,
    ),
    ClusterEnvironment(
        "tpu",
        lambda variables: (
            "TPU_WORKER_ID" in variables
            and bool({"TPU_WORKER_HOSTNAMES", "TPU_PROCESS_ADDRESSES"} & variables.keys())
        ),
        _tpu_coordinator,
        _tpu_count,
        _tpu_id,
        _none,
        "https://cloud.google.com/kubernetes-engine/docs/concepts/tpus",
    ),
    ClusterEnvironment(
        "k8s",
        lambda variables: {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= variables.keys(),
        lambda variables: _job_of_kubernetes(variables)[0],
        lambda variables: _job_of_kubernetes(variables)[1],
        _number("JOB_COMPLETION_INDEX"),
        _none,
        "https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode",
    ),
)


def detected(method: str | None, variables: Mapping[str, str]) -> ClusterEnvironment | None:
    """Return the launcher of this process, or None without one or with method "deactivate".

    Args:
      method: the name of a launcher; "deactivate" for none; None for the first that is present.
      variables: the environment variables.

    Raises:
      ValueError: if no launcher has that name.
      RuntimeError: if the named launcher did not start this process.
    """
    if method == "deactivate":
        return None
    if method is None:
        present = (e for e in ENVIRONMENTS if not e.is_opt_in and e.is_present(variables))
        return next(present, None)
    named = {environment.name: environment for environment in ENVIRONMENTS}.get(method)
    if named is None:
        names = ", ".join(environment.name for environment in ENVIRONMENTS)
        raise ValueError(f"cluster_detection_method is one of {names}, deactivate: got {method!r}")
    if not named.is_present(variables):
        raise RuntimeError(
            f"this process was not started by {method}: the variables that it sets are missing "
            f"(see {named.documented_at})"
        )
    return named
