"""What launchers say by environment variables, on examples of their documentation."""

import pytest

from hlofront.pjrt.cluster_environments import detected, first_host

SLURM = {
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_NODELIST": "node[07-09,12],other",
    "SLURM_JOB_NODELIST": "node[07-09,12],other",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}
KUBERNETES = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "JOB_COMPLETION_INDEX": "2",
    "HOSTNAME": "train-workers-0-2",
    "JOBSET_NAME": "train",
    "JAX_NUM_PROCESSES": "4",
}
TPU = {
    "TPU_WORKER_ID": "1",
    "TPU_WORKER_HOSTNAMES": "t-0,t-1",
    "MEGASCALE_COORDINATOR_ADDRESS": "t-0.slice:8080",
    "MEGASCALE_NUM_SLICES": "2",
    "MEGASCALE_SLICE_ID": "1",
}


@pytest.mark.parametrize(
    ("variables", "name", "host", "count", "number", "local"),
    [
        (SLURM, "slurm", "node07", 8, 5, 1),
        (OPEN_MPI, "ompi", "10.96.0.1", 4, 3, 1),
        (KUBERNETES, "k8s", "train-workers-0-0.train", 4, 2, None),
        (TPU, "tpu", "t-0.slice", 4, 3, None),
    ],
)
def test_launchers(variables, name, host, count, number, local):
    environment = detected(None, variables)
    assert environment.name == name
    coordinator = environment.coordinator(variables)
    assert coordinator.rpartition(":")[0] == host
    assert 61440 <= int(coordinator.rpartition(":")[2]) < 65536
    assert environment.process_count(variables) == count
    assert environment.process_id(variables) == number
    assert environment.local_id(variables) == local


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("node7", "node7"),
        ("node[7]", "node7"),
        ("node[007-009,12]", "node007"),
        ("a,b[1-2]", "a"),
        ("r1-n[3,4],x", "r1-n3"),
    ],
)
def test_node_lists_of_slurm(nodes, host):
    assert first_host(nodes) == host


def test_detection_may_be_named_or_turned_off():
    assert detected("deactivate", SLURM) is None
    assert detected(None, {}) is None
    with pytest.raises(ValueError, match="is one of ompi, slurm"):
        detected("slrum", SLURM)
    with pytest.raises(RuntimeError, match="not started by ompi"):
        detected("ompi", SLURM)


def test_pods_must_be_told_their_number():
    variables = {name: text for name, text in KUBERNETES.items() if name != "JAX_NUM_PROCESSES"}
    with pytest.raises(RuntimeError, match="set JAX_NUM_PROCESSES"):
        detected(None, variables).process_count(variables)
