-- render-farm: a farm manager's job database, for sysbench 1.0. Started by render_farm.py, which prepares the jobs
-- 1..jobs. Every thread walks its own share of them as a supervisor's scheduling loop does, so that a table is open
-- once however many threads there are; only `list` reads the jobs of all threads.

local farm = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "farm.lua")

farm.declare {
    jobs = {"active jobs", 1},
    order = {"turn or random", "turn"},
    dispatch = {"weight of dispatch in the mix", 1},
    report = {"weight of report in the mix", 1},
    submit = {"weight of submit in the mix", 0},
    complete = {"weight of complete in the mix", 0},
    list = {"weight of list in the mix", 0},
}

-- In the order of Workload.operations.
local DISPATCH, REPORT, SUBMIT, COMPLETE, LIST = 0, 1, 2, 3, 4

local loop, weights
local share, cursor = {}, 0
local vacant

function thread_init(thread)
    local opt = sysbench.opt
    local shared = opt.jobs < opt.threads
    farm.connected()
    for job = shared and thread % opt.jobs + 1 or thread + 1, opt.jobs, opt.threads do share[#share + 1] = job end
    -- A job is completed and at once another one is submitted in its place: the number of active jobs stays the
    -- level's. So both happen equally often, with the mean of their weights; jobs that threads share stay.
    weights = {opt.dispatch, opt.report, 0, shared and 0 or (opt.submit + opt.complete) / 2, opt.list}
    loop = farm.loop(thread)
end

function thread_done()
    loop.close()
    farm.disconnect()
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

local actions = {}

actions[DISPATCH] = function(job)
    local sql = statements_of(job)
    farm.query(sql.look)
    farm.query(sql.take)
end

actions[REPORT] = function(job) farm.query(statements_of(job).report) end

actions[COMPLETE] = function(job)
    local names = farm.tables_of(job)
    farm.query("INSERT INTO %s SELECT '%s', id, state, payload FROM %s", farm.table("archive"), names[1], names[1])
    farm.query("DROP TABLE " .. table.concat(names, ", "))
end

-- Reads until all are read or the time is up: an unfinished list is no answer and is not logged. A job that
-- another thread completes meanwhile is no longer active: the list goes on without it.
local function list()
    for job = 1, sysbench.opt.jobs do
        if loop.over() then return end
        farm.attempt(farm.read_job, job)
    end
    if not loop.over() then return LIST, 0 end
end

local function request()
    if vacant then
        local job = vacant
        vacant = nil
        return SUBMIT, farm.attempt(farm.create_job, job)
    end
    local operation = farm.choose(weights)
    if operation == LIST then return list() end
    local job = next_job()
    local outcome = farm.attempt(actions[operation], job)
    if operation == COMPLETE and outcome == 0 then vacant = job end
    return operation, outcome
end

function event()
    return loop.once(farm.connected, request)
end
