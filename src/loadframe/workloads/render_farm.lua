-- render-farm: a farm manager's job database, for sysbench 1.0. Started by render_farm.py, which prepares the jobs
-- 1..jobs. Every thread walks its own share of them as a supervisor's scheduling loop does, so that a table is open
-- once however many threads there are; only `list` reads the jobs of all threads.

local farm = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "farm.lua")

sysbench.cmdline.options = {
    folder = farm.options.folder,
    schema = farm.options.schema,
    tables = farm.options.tables,
    engine = farm.options.engine,
    filled = farm.options.filled,
    jobs = {"active jobs", 1},
    order = {"turn or random", "turn"},
    seconds = {"how long to work", "1"},
    dispatch = {"weight of dispatch in the mix", 1},
    report = {"weight of report in the mix", 1},
    submit = {"weight of submit in the mix", 0},
    complete = {"weight of complete in the mix", 0},
    list = {"weight of list in the mix", 0},
}

-- In the order of Workload.operations.
local DISPATCH, REPORT, SUBMIT, COMPLETE, LIST = 0, 1, 2, 3, 4
-- A thread that is refused a connection asks again after this long; each refusal is a request that failed.
local REFUSED_PAUSE_S = 0.01

local connection, log, deadline_s
local bounds, total
local share, cursor
local vacant

local function job_share(thread)
    local jobs, threads, mine = sysbench.opt.jobs, sysbench.opt.threads, {}
    if jobs < threads then return {thread % jobs + 1} end
    for job = thread + 1, jobs, threads do mine[#mine + 1] = job end
    return mine
end

function thread_init(thread)
    connection = farm.connect()
    log = farm.open_thread_log(thread)
    share, cursor = job_share(thread), 0
    vacant = nil
    -- A job is completed and at once another one is submitted in its place: the number of active jobs stays the
    -- level's. So both happen equally often, with the mean of their weights; jobs that threads share stay.
    local opt = sysbench.opt
    local turnover = opt.jobs < opt.threads and 0 or (opt.submit + opt.complete) / 2
    bounds, total = {}, 0
    for i, weight in ipairs({opt.dispatch, opt.report, 0, turnover, opt.list}) do
        total = total + weight
        bounds[i] = total
    end
    deadline_s = farm.now_s() + tonumber(sysbench.opt.seconds)
end

function thread_done()
    log.close()
    if connection then connection:disconnect() end
end

local function next_job()
    if sysbench.opt.order == "random" then return share[sysbench.rand.uniform(1, #share)] end
    cursor = cursor % #share + 1
    return share[cursor]
end

-- The statements of a job are made once and kept.
local statements = {}

local function statements_of(job)
    local made_before = statements[job]
    if made_before then return made_before end
    local froms, states, sets, ids = {}, {}, {}, {}
    local names = farm.tables_of(job)
    for i, name in ipairs(names) do
        froms[i] = string.format("%s t%d", name, i)
        states[i] = string.format("t%d.state", i)
        sets[i] = string.format("t%d.state = t%d.state + 1", i, i)
        ids[i] = string.format("t%d.id = 1", i)
    end
    local tables, where = table.concat(froms, ", "), " WHERE " .. table.concat(ids, " AND ")
    statements[job] = {
        look = "SELECT " .. table.concat(states, ", ") .. " FROM " .. tables .. where,
        take = "UPDATE " .. names[1] .. " SET state = state + 1 WHERE id = 1",
        report = "UPDATE " .. tables .. " SET " .. table.concat(sets, ", ") .. where,
    }
    return statements[job]
end

local function dispatch()
    local sql = statements_of(next_job())
    connection:query(sql.look)
    connection:query(sql.take)
end

local function report()
    connection:query(statements_of(next_job()).report)
end

local function submit(job)
    farm.create_job(connection, job)
end

local function complete(job)
    local names = farm.tables_of(job)
    connection:query(string.format("INSERT INTO %s SELECT '%s', id, state, payload FROM %s", farm.table("archive"),
                                   names[1], names[1]))
    connection:query("DROP TABLE " .. table.concat(names, ", "))
end

-- Reads until all are read or the time is up: an unfinished list is no answer and is not logged. A job that
-- another thread completes meanwhile is no longer active: the list goes on without it.
local function list()
    for job = 1, sysbench.opt.jobs do
        if farm.now_s() > deadline_s then return end
        farm.attempt(farm.read_job, connection, job)
    end
end

local function choose()
    local draw = sysbench.rand.uniform_double() * total
    for i, bound in ipairs(bounds) do
        if draw < bound then return i - 1 end
    end
    return DISPATCH
end

function event(thread)
    local start_s = farm.now_s()
    if start_s >= deadline_s then return true end
    if not connection then
        connection = farm.connect()
        if not connection then
            log.add(DISPATCH, start_s, 1)
            farm.sleep_s(REFUSED_PAUSE_S)
        end
        return
    end
    if vacant then
        log.add(SUBMIT, start_s, farm.attempt(submit, vacant))
        vacant = nil
        return
    end
    local operation = choose()
    if operation == DISPATCH then
        log.add(DISPATCH, start_s, farm.attempt(dispatch))
    elseif operation == REPORT then
        log.add(REPORT, start_s, farm.attempt(report))
    elseif operation == LIST then
        list()
        if farm.now_s() <= deadline_s then log.add(LIST, start_s, 0) end
    else
        local job = next_job()
        local outcome = farm.attempt(complete, job)
        log.add(COMPLETE, start_s, outcome)
        if outcome == 0 then vacant = job end
    end
end
