"""Joins the process group that the launcher describes, if it describes one."""

import os

import pytest
import torch
import torch.distributed as dist


@pytest.fixture(scope="session", autouse=True)
def process_group():
    torch.set_num_threads(1)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield
        return
    use_gpus = torch.cuda.is_available() and torch.cuda.device_count() >= size
    if use_gpus:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", os.environ["RANK"])))
    dist.init_process_group("nccl" if use_gpus else "gloo")
    yield
    dist.destroy_process_group()


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1234)


@pytest.fixture
def world_size(process_group):
    return dist.get_world_size() if dist.is_initialized() else 1


@pytest.fixture
def device(process_group):
    from ministack.parallel import local_device

    return local_device()


@pytest.fixture
def needs_ranks(world_size):
    if world_size < 2:
        pytest.skip("needs two ranks or more")
    return world_size
