-- What our Lua scripts share, whatever tool runs them: the clock, the arrivals of an open loop, the request log.
-- Loaded with dofile by sysbench.lua and by http.lua (wrk); each thread has its own copy.

local ffi = require("ffi")

ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } loadframe_time;
int loadframe_clock_gettime(int clock, loadframe_time *now) __asm__("clock_gettime");
int loadframe_usleep(unsigned int microseconds) __asm__("usleep");
long loadframe_read(int file, void *buffer, unsigned long size) __asm__("read");
int loadframe_open(const char *path, int flags) __asm__("open");
int loadframe_close(int file) __asm__("close");
long loadframe_lseek(int file, long offset, int whence) __asm__("lseek");
void *loadframe_mmap(void *at, unsigned long size, int protection, int flags, int file, long offset) __asm__("mmap");
typedef struct __attribute__((packed)) {
    double end_s; float latency_ms; float waiting_ms; uint32_t operation; uint32_t outcome;
} loadframe_request;
]]

local CLOCK_MONOTONIC, O_RDWR, SEEK_END, PROT_READ, PROT_WRITE, MAP_SHARED = 1, 2, 2, 1, 2, 1
-- A driver that is killed loses no more of its log.
local FLUSH_EVERY_S = 0.1

local driver = {}

local instant = ffi.new("loadframe_time")

function driver.now_s()
    ffi.C.loadframe_clock_gettime(CLOCK_MONOTONIC, instant)
    return tonumber(instant.seconds) + tonumber(instant.nanoseconds) * 1e-9
end

function driver.sleep_s(seconds)
    ffi.C.loadframe_usleep(seconds * 1e6)
end

local arrival = ffi.new("double[3]")

-- When the next request should begin and when the step ends (arrivals.py); of a replay also which request it is. All
-- threads read the same standard input, so each arrival is one thread's. Nothing is there until all threads are ready.
function driver.next_arrival_s(replayed)
    local size = replayed and 24 or 16
    while ffi.C.loadframe_read(0, arrival, size) < size do driver.sleep_s(0.001) end
    return arrival[0], arrival[1], replayed and arrival[2] or nil
end

-- The content of an open file, and its length.
function driver.map(file, protection)
    local length = ffi.C.loadframe_lseek(file, 0, SEEK_END)
    if length <= 0 then error("cannot read a file of the step") end
    local begin = ffi.C.loadframe_mmap(nil, length, protection or PROT_READ, MAP_SHARED, file, 0)
    if ffi.cast("intptr_t", begin) == -1 then error("cannot map a file of the step") end
    return ffi.cast("const char *", begin), tonumber(length)
end

-- The same by its path. writable: what is written there is in the file.
function driver.map_path(path, writable)
    local file = ffi.C.loadframe_open(path, writable and O_RDWR or 0)
    local begin, length = driver.map(file, writable and PROT_READ + PROT_WRITE)
    ffi.C.loadframe_close(file)
    return begin, length
end

-- A file for records. watched: each is there at once, for a reader that counts them while they come.
function driver.open_records(path, watched)
    local file, problem = io.open(path, "wb")
    if file == nil then error("cannot write the request log: " .. problem) end
    if watched then file:setvbuf("no") end
    return file
end

-- The request log of one thread: records of 24 bytes, laid out as in request_log.py. add answers the end (s).
function driver.open_log(path, watched)
    local file = driver.open_records(path, watched)
    local record = ffi.new("loadframe_request")
    local log, flushed_s = {}, 0

    function log.add(operation, start_s, outcome)
        record.end_s = driver.now_s()
        record.latency_ms = (record.end_s - start_s) * 1e3
        record.waiting_ms = 0
        record.operation = operation
        record.outcome = outcome
        file:write(ffi.string(record, 24))
        if record.end_s - flushed_s > FLUSH_EVERY_S then
            file:flush()
            flushed_s = record.end_s
        end
        return record.end_s
    end

    function log.close() file:close() end

    return log
end

return driver
