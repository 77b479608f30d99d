"""Which functions belong to which class of work: a table of name patterns, each row with its source.

A pattern matches a whole function name. scope: "kernel" for frames with `_[k]`, "user" for the others. Rows are looked
up from the innermost frame of a stack outwards; the first frame that has a row decides (stacks.py).
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain

from loadframe.analysis.collector_frames import OF_COLLECTORS
from loadframe.knowledge.frame import FrameRow, Scope
from loadframe.knowledge.kinds import rows

KERNEL_SUFFIX = "_[k]"

_OF_ANY_PROGRAM: tuple[FrameRow, ...] = (
    FrameRow("running", "user", r"\[running or runnable\]", "state R in /proc/PID/task/TID/stat, proc(5)"),
    FrameRow("lock", "user", r"\[futex: lock\]", "FUTEX_WAIT, futex(2); glibc nptl/lowlevellock.c"),
    FrameRow(
        "condition", "user", r"\[futex(: condition)?\]", "FUTEX_WAIT_BITSET, futex(2); glibc nptl/futex-internal.c"
    ),
    FrameRow(
        "lock",
        "kernel",
        r"(native|__pv)_queued_spin_lock_slowpath|queued_(read|write)_lock_slowpath|osq_lock"
        r"|rwsem_(spin_on_owner|optimistic_spin|down_(read|write)_slowpath)|__?mutex_lock.*|mutex_spin_on_owner"
        r"|rt_mutex_slowlock.*|_*futex_.*|do_futex|get_futex_key|plist_(add|del)",
        "Linux kernel/locking/, kernel/futex/",
    ),
    FrameRow("lock", "kernel", r"(flock|posix)_lock_inode.*|fcntl_setlk|locks_lock_inode_wait", "Linux fs/locks.c"),
    FrameRow(
        "lock",
        "user",
        r"_*lll_(un)?lock_(wait|wake).*|_*(GI_)?_*pthread_(mutex|rwlock|spin|cond)_.*|_*futex_.*",
        "glibc nptl/",
    ),
    FrameRow(
        "reclaim",
        "kernel",
        r"shrink_(lruvec|node|slab|folio_list|inactive_list|active_list|one|many).*|do_shrink_slab|try_to_free_(mem_cgroup_)?pages"
        r"|balance_pgdat|kswapd|__alloc_pages_direct_(reclaim|compact)|compact_zone.*|mem_cgroup_handle_over_high"
        r"|__?mem_cgroup_out_of_memory|swap_(write|read)_?(page|folio).*|do_swap_page|evict_folios",
        "Linux mm/vmscan.c, mm/compaction.c, mm/page_io.c",
    ),
    FrameRow(
        "copy",
        "kernel",
        r"_?copy_(to|from)_iter.*|copy_page_(to|from)_iter.*|copy_folio_(to|from)_iter.*|copy_user_.*|rep_movs_alternative"
        r"|__arch_copy_(to|from)_user|_?copy_(to|from)_user.*|copyin|copyout|_*mem(cpy|move)(_\w+)?|csum_partial_copy.*"
        r"|skb_copy_datagram_.*",
        "Linux lib/iov_iter.c, arch/*/lib/copy_*",
    ),
    FrameRow("copy", "user", r"_*(GI_)?_*(mem(cpy|move|pcpy))(_\w+)?", "glibc sysdeps/*/multiarch/mem*"),
    FrameRow(
        "fault",
        "kernel",
        r"asm_exc_page_fault|exc_page_fault|do_(user_addr_fault|page_fault|translation_fault|anonymous_page|(read_|cow_|shared_)?fault(_around)?|wp_page)"
        r"|_*handle_mm_fault|handle_pte_fault|filemap_(fault|map_pages)|clear_(page|huge_page|folio).*|wp_page_copy|el[01]_da",
        "Linux mm/memory.c, arch/x86/mm/fault.c, arch/arm64/mm/fault.c",
    ),
    FrameRow(
        "io",
        "kernel",
        r"vfs_fsync_range|do_fsync|\w+_sys_(fsync|fdatasync|sync_file_range)|\w+_sync_file|ext4_fsync_\w+|xfs_file_fsync"
        r"|jbd2_.*|kjournald2|submit_bio.*|_*blk_.*|bio_.*|nvme_.*|virtblk_.*|virtio_queue_rqs?|scsi_.*|dm_\w+"
        r"|io_schedule.*|folio_wait_(bit|writeback).*|__filemap_fdatawait_range|file(map)?_(write_and_wait|fdatawrite).*"
        r"|writeback_.*|wb_.*|do_writepages|\w+_writepages|_*sync_dirty_buffer|__wait_on_buffer|balance_dirty_pages.*"
        r"|page_cache_ra_.*|read_pages|iomap_dio_.*|__blockdev_direct_IO",
        "Linux block/, fs/sync.c, fs/jbd2/, mm/filemap.c",
    ),
    FrameRow(
        "network",
        "kernel",
        r"_*tcp_.*|_*udp_.*|_*ip6?_.*|_*inet6?_.*|_*sock_.*|_*sys_(send|recv)(to|from|msg|mmsg)?|_*sk_.*|_*skb_.*|_*unix_.*"
        r"|_*netif_.*|net_rx_action|net_tx_action|_*dev_queue_xmit.*|_*napi_.*|loopback_xmit|process_backlog|nf_.*|virtnet_.*",
        "Linux net/",
    ),
    FrameRow(
        "network",
        "kernel",
        r"do_sys_poll|do_poll.*|_*pollwait|poll_(freewait|schedule_timeout|select_finish)|do_select|core_sys_select|ep_\w+|do_epoll_\w+",
        "Linux fs/select.c, fs/eventpoll.c",
    ),
    FrameRow(
        "files",
        "kernel",
        r"do_sys_open(at2)?|do_filp_open|path_openat|do_dentry_open|link_path_walk.*|path_(lookup|parent)at|filename_\w+"
        r"|vfs_(statx?|getattr\w*|open|unlink|create|fstat)|do_unlinkat|_*fput.*|filp_close|file_close_fd\w*|_*x64_sys_close"
        r"|_*d_(lookup|alloc|walk|instantiate)\w*|dput|step_into|lookup_fast|getname_flags|alloc_(empty_)?file\w*"
        r"|ext4_.*|xfs_.*|btrfs_.*|shmem_.*|generic_perform_write|filemap_(read|get_\w+)|_*find_get_block\w*|(generic|file|touch)_\w*time",
        "Linux fs/namei.c, fs/open.c, fs/file_table.c, mm/filemap.c, fs/ext4/",
    ),
    FrameRow(
        "timer",
        "kernel",
        r"(hrtimer|do|common|clock)_nsleep\w*|(hrtimer|do|clock)_nanosleep\w*|\w+_sys_(clock_)?nanosleep|msleep\w*|usleep_\w+",
        "Linux kernel/time/",
    ),
    FrameRow(
        "scheduling",
        "kernel",
        r"_*schedule|finish_task_switch|try_to_wake_up|wake_up_q|ttwu_\w+|(en|de)queue_(task|entity).*|pick_next_\w+|_*pick_task\w*"
        r"|update_(curr|load_avg)\w*|select_task_rq\w*|sched_balance_\w+|load_balance|newidle_balance|_*switch_to\w*"
        r"|asm_sysvec_reschedule_ipi|prepare_task_switch|switch_mm\w*|do_sched_yield|__x64_sys_sched_yield",
        "Linux kernel/sched/",
    ),
    FrameRow(
        "allocation",
        "user",
        r"_*(libc_)?(malloc|calloc|realloc|free|cfree|memalign)|_*int_(malloc|free|realloc)\w*|malloc_consolidate"
        r"|unlink_chunk|tcache_\w+|sysmalloc|(je|tc|mi)_\w*alloc\w*|(je|tc|mi)_free\w*|operator (new|delete)(\[\])?",
        "glibc malloc/, jemalloc, tcmalloc, mimalloc",
    ),
    FrameRow(
        "allocation",
        "kernel",
        r"\w+_sys_(brk|mmap|munmap|madvise|mremap)|do_mmap|vm_mmap_pgoff|_*vm_munmap|do_madvise",
        "Linux mm/mmap.c, mm/madvise.c",
    ),
    FrameRow(
        "process",
        "kernel",
        r"kernel_clone|copy_process|do_exec\w*|bprm_execve|load_elf_binary|do_exit|do_group_exit|exit_mmap|kernel_wait4|do_wait",
        "Linux kernel/fork.c, kernel/exit.c, fs/exec.c",
    ),
)

ROWS = (*_OF_ANY_PROGRAM, *OF_COLLECTORS, *chain.from_iterable(rows("frames", "FRAMES", FrameRow).values()))
"""Those of the kernel and its libraries, of collectors of garbage, then those of each kind of
server (`kinds/NAME/frames.py`)."""


def _compiled(scope: Scope) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(row.pattern), row.class_id) for row in ROWS if row.scope == scope)


_KERNEL, _USER = _compiled("kernel"), _compiled("user")


@lru_cache(maxsize=65536)
def class_of_frame(frame: str) -> str | None:
    """The class of a frame's function; None for one that no row names."""
    in_kernel = frame.endswith(KERNEL_SUFFIX)
    name = frame.removesuffix(KERNEL_SUFFIX)
    rows = _KERNEL if in_kernel else _USER
    return next((class_id for pattern, class_id in rows if pattern.fullmatch(name)), None)
