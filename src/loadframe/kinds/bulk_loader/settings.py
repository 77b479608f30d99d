"""The bulk loader as data: its settings."""

from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.model import SettingValue

OURS = "kinds/bulk_loader/server.py"
DEFAULTS: dict[str, SettingValue] = {"pool": 0, "batch_bytes": 1 << 18}
SHARD = "shard_"
"""Before the name of a setting of its shards."""
CATALOGUE = Catalogue(
    "bulk-loader",
    (
        SettingSpec("pool", "integer", False, 0, 256, (), DEFAULTS["pool"], source=OURS),
        SettingSpec("batch_bytes", "bytes", False, 1 << 10, 1 << 26, (), DEFAULTS["batch_bytes"], source=OURS),
    ),
    "the loader's settings are pool and batch_bytes; those of its shards begin with shard_",
)
