-- What both render-farm scripts share: the request log, the names of a job's tables, and what is done to a job.
-- Loaded with dofile by render_farm.lua and render_farm_burst.lua; each sysbench thread has its own copy.

local ffi = require("ffi")

ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } loadframe_time;
int loadframe_clock_gettime(int clock, loadframe_time *now) __asm__("clock_gettime");
int loadframe_usleep(unsigned int microseconds) __asm__("usleep");
long loadframe_read(int file, void *buffer, unsigned long size) __asm__("read");
typedef struct __attribute__((packed)) {
    double end_s; float latency_ms; float waiting_ms; uint32_t operation; uint32_t outcome;
} loadframe_request;
]]

local CLOCK_MONOTONIC = 1

local farm = {}

farm.options = {
    folder = {"where the request logs go", "."},
    tables = {"kinds of table that each job keeps, separated by commas", "job"},
    engine = {"storage engine of the tables", "MyISAM"},
}

local instant = ffi.new("loadframe_time")

function farm.now_s()
    ffi.C.loadframe_clock_gettime(CLOCK_MONOTONIC, instant)
    return tonumber(instant.seconds) + tonumber(instant.nanoseconds) * 1e-9
end

-- A connection, or nil where the server refuses one (all may be taken): a farm's thread tries again later.
function farm.connect()
    local made, connection = pcall(function() return sysbench.sql.driver():connect() end)
    return made and connection or nil
end

function farm.sleep_s(seconds)
    ffi.C.loadframe_usleep(seconds * 1e6)
end

local arrival = ffi.new("double[2]")

-- When the next request should begin and when the step ends, in an open loop (sysbench.py). All threads read the same
-- standard input, so each arrival is one thread's. Nothing is there until all threads are connected.
function farm.next_arrival_s()
    while ffi.C.loadframe_read(0, arrival, 16) < 16 do farm.sleep_s(0.001) end
    return arrival[0], arrival[1]
end

-- The request log of one thread: records of 24 bytes, laid out as in request_log.py. watched: each is there at once, for
-- somebody who counts them while they come.
function farm.open_log(thread, watched)
    local path = string.format("%s/requests-%d.log", sysbench.opt.folder, thread)
    local file, problem = io.open(path, "wb")
    if file == nil then error("cannot write the request log: " .. problem) end
    if watched then file:setvbuf("no") end
    local record = ffi.new("loadframe_request")
    local log = {}

    function log.add(operation, start_s, outcome)
        record.end_s = farm.now_s()
        record.latency_ms = (record.end_s - start_s) * 1e3
        record.waiting_ms = 0
        record.operation = operation
        record.outcome = outcome
        file:write(ffi.string(record, 24))
    end

    function log.close() file:close() end

    return log
end

-- sysbench marks errors that a farm would simply retry (sysbench.py: RETRIED) with RESTART_EVENT. Anything else is
-- fatal and goes up. Returns 0 where the action was done, 1 where it has to be asked again.
function farm.attempt(action, ...)
    local done, problem = pcall(action, ...)
    if done then return 0 end
    if type(problem) == "table" and problem.errcode == sysbench.error.RESTART_EVENT then return 1 end
    error(problem, 0)
end

local kinds = nil

-- The names of the tables of one job, in the order in which they are created.
function farm.tables_of(job)
    if kinds == nil then
        kinds = {}
        for kind in sysbench.opt.tables:gmatch("[^,]+") do kinds[#kinds + 1] = kind end
    end
    local names = {}
    for i, kind in ipairs(kinds) do names[i] = kind .. "_" .. job end
    return names
end

function farm.create_job(connection, job)
    for _, name in ipairs(farm.tables_of(job)) do
        connection:query(string.format("CREATE TABLE %s (PRIMARY KEY (id)) ENGINE = %s SELECT * FROM template",
                                       name, sysbench.opt.engine))
    end
end

-- Reads every row of every table of the job.
function farm.list_sql(job)
    local parts = {}
    for i, name in ipairs(farm.tables_of(job)) do parts[i] = "SELECT id, state, payload FROM " .. name end
    return table.concat(parts, " UNION ALL ")
end

function farm.read_job(connection, job)
    connection:query(farm.list_sql(job))
end

return farm
