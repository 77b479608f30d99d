"""`[cage]`: what each component of a study is allowed."""

from typing import TypeVar

from pydantic import ConfigDict, Field

from loadframe.study.fields import CpuQuota, Cpus, Nice, Rate, Size, Table

QUOTA_PERIOD_US = 100_000
Value = TypeVar("Value")


def _given(values: dict[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}


class ComponentCage(Table):
    """What one component is allowed. Everything but cpus and open_files needs control groups."""

    cpus: Cpus = Field(None, description='CPUs it may use, for example "0-1"')
    cpu_quota: CpuQuota | None = Field(
        None, ge=0.01, le=8192, description='CPU time in CPUs, for example 0.5 or "50%": used up, it waits'
    )
    memory: Size | None = Field(None, ge=1 << 20, description='memory, page cache included, for example "512MiB"')
    read_rate: Rate | None = Field(None, ge=1024, description='bytes read from the disk, for example "40MB/s"')
    write_rate: Rate | None = Field(None, ge=1024, description='bytes written to the disk, for example "40MB/s"')
    read_iops: int | None = Field(None, ge=1, description="reads from the disk per second")
    write_iops: int | None = Field(None, ge=1, description="writes to the disk per second, flushes included")
    processes: int | None = Field(None, ge=1, description="processes and threads at once")
    open_files: int | None = Field(None, ge=32, description="RLIMIT_NOFILE")

    def group_limits(self) -> dict[str, int]:
        """By their names in version 2 (units: cages/cage.py)."""
        return _given(
            {
                "cpu.max": None if self.cpu_quota is None else round(self.cpu_quota * QUOTA_PERIOD_US),
                "memory.max": self.memory,
                "pids.max": self.processes,
                "io.rbps": self.read_rate,
                "io.wbps": self.write_rate,
                "io.riops": self.read_iops,
                "io.wiops": self.write_iops,
            }
        )

    def process_limits(self) -> dict[str, int]:
        """By their names in setrlimit(2)."""
        return _given({"RLIMIT_NOFILE": self.open_files})


class CageTable(ComponentCage):
    """The target's cage, the driver's, and those of further components that a target may have, by their names."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, ComponentCage] = Field(init=False)

    driver: ComponentCage = ComponentCage()
    nice: Nice = None

    @property
    def components(self) -> dict[str, ComponentCage]:
        """All but the target, including the driver."""
        return {"driver": self.driver, **(self.__pydantic_extra__ or {})}

    @property
    def shard(self) -> ComponentCage:
        return self.components.get("shard", ComponentCage())


class ChangeDriver(Table):
    cpus: Cpus = Field(None, description='CPUs that the load driver may use, for example "1"')


class ChangeCage(Table):
    """What an alternative or a change of a ladder gives the target's processes."""

    open_files: int | None = Field(None, ge=32, description="RLIMIT_NOFILE of the target")
    nice: Nice = None
    cpus: Cpus = Field(None, description='CPUs that the target may use, for example "0"')
    driver: ChangeDriver = ChangeDriver()

    @property
    def limits(self) -> dict[str, int]:
        return _given({"RLIMIT_NOFILE": self.open_files, "nice": self.nice})

    @property
    def bound(self) -> dict[str, str]:
        return _given({"cage.cpus": self.cpus, "cage.driver.cpus": self.driver.cpus})
