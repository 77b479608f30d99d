-- render-farm-burst: jobs that submit jobs, recursively, until there are `jobs` of them; the last `listing` jobs then
-- each list every job in full. For sysbench 1.0, started by render_farm.py on an empty farm.
--
-- Job 1 is there from the start; job j submits the jobs fan_out * (j - 1) + 2 .. fan_out * j + 1, so every parent has a
-- smaller number than its children. Worker t runs the jobs t + 1, t + 1 + workers, ... in that order, each as soon as
-- it was submitted; since the smallest job not yet run always has a parent that was run, a worker can always go on.
-- The workers share a file that says who was submitted: byte j is job j's, written by one worker only;
-- byte 0 says that some worker failed, so that the others do not wait for ever for the jobs it will not submit.

local ffi = require("ffi")
local farm = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "farm.lua")

farm.declare {
    jobs = {"jobs in the end", 1},
    fan_out = {"jobs that each job submits", 1},
    listing = {"how many of the last jobs list every job", 0},
    reads = {"a listing job repeats until it has read this many jobs", 1},
    rows = {"rows in each table of a new job", 1},
}

-- In the order of Workload.operations.
local SUBMIT, READ, LIST = 0, 1, 2

local log, submitted, job, known, first_read, listings

function thread_init(thread)
    farm.connection = sysbench.sql.driver():connect()
    log = farm.open_thread_log(thread)
    submitted = ffi.cast("volatile uint8_t *", (farm.map_path(sysbench.opt.folder .. "/submitted", true)))
    job, known, listings = thread + 1, 0, 0
    -- Listings that went through the jobs in step would keep a copy of each table open for every worker.
    first_read = math.floor(thread * sysbench.opt.jobs / sysbench.opt.threads)
end

function thread_done()
    log.close()
    farm.disconnect()
end

-- A worker asks again every 0.2 ms, a fraction of what creating one table takes.
local function wait_for(number)
    while submitted[number] == 0 do
        if submitted[0] ~= 0 then error("another worker failed") end
        farm.sleep_s(0.0002)
    end
end

local function submit_children(parent)
    local first, names = sysbench.opt.fan_out * (parent - 1) + 2, farm.tables_of(parent)
    for child = first, math.min(first + sysbench.opt.fan_out - 1, sysbench.opt.jobs) do
        local start_s = farm.now_s()
        farm.create_job(child)
        -- The parent's own rows say which jobs it has submitted.
        local place = sysbench.opt.rows + (child - 2) % sysbench.opt.fan_out + 1
        farm.query("INSERT INTO %s VALUES (%d, %d, '')", names[math.min(3, #names)], place, child)
        log.add(SUBMIT, start_s, 0)
        submitted[child] = 1
    end
end

local function list_all()
    local start_s = farm.now_s()
    for read = first_read, first_read + sysbench.opt.jobs - 1 do
        local read_s = farm.now_s()
        farm.read_job(read % sysbench.opt.jobs + 1)
        log.add(READ, read_s, 0)
    end
    log.add(LIST, start_s, 0)
end

local function list_enough()
    while known < sysbench.opt.jobs do
        wait_for(known + 1)
        known = known + 1
    end
    local left = sysbench.opt.reads
    repeat
        list_all()
        left = left - sysbench.opt.jobs
    until left <= 0
end

-- All of a worker's jobs submit before any of them lists: a listing waits for every job, so a job queued behind one
-- would never submit the rest.
local function run_next()
    if job <= sysbench.opt.jobs then
        wait_for(job)
        submit_children(job)
        if job > sysbench.opt.jobs - sysbench.opt.listing then listings = listings + 1 end
        job = job + sysbench.opt.threads
    else
        listings = listings - 1
        list_enough()
    end
end

function event()
    if job > sysbench.opt.jobs and listings == 0 then return true end
    local done, problem = pcall(run_next)
    if not done then
        submitted[0] = 1
        -- Never as RESTART_EVENT: a burst with a request missing would wait for ever, or prove nothing.
        error(type(problem) == "table" and "the server asked for a retry (deadlock or lock wait)" or problem, 0)
    end
end
