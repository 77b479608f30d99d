-- oltp: short transactions on a few large tables, for sysbench 1.0. Started by oltp.py, which makes the tables.

local farm = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "farm.lua")

sysbench.cmdline.options = {
    folder = farm.options.folder,
    tables = {"number of tables", 1},
    rows = {"rows in each table", 1},
    hot_rows = {"updates and transfers choose among this many rows of a table; 0: among all", 0},
    payload_bytes = {"payload that an update writes anew", 100},
    seconds = {"how long to work, from the connection on", "1"},
    open_loop = {"1: requests begin when they should, by the arrivals on standard input", 0},
    read = {"weight of read in the mix", 1},
    update = {"weight of update in the mix", 1},
    transfer = {"weight of transfer in the mix", 1},
}

-- In the order of Workload.operations.
local READ, UPDATE, TRANSFER = 0, 1, 2
-- A thread that is refused a connection asks again after this long; each refusal is a request that failed.
local REFUSED_PAUSE_S = 0.01

local connection, log, deadline_s, open_loop
local payloads, changed

function thread_init(thread)
    connection = farm.connect()
    open_loop = sysbench.opt.open_loop ~= 0
    log = farm.open_log(thread, open_loop)
    -- Two payloads by turns: a row that is written as it is costs a server nothing.
    payloads = {string.rep("x", sysbench.opt.payload_bytes), string.rep("y", sysbench.opt.payload_bytes)}
    changed = thread
    deadline_s = farm.now_s() + tonumber(sysbench.opt.seconds)
end

function thread_done()
    log.close()
    if connection then connection:disconnect() end
end

local function table_name()
    return "oltp_" .. sysbench.rand.uniform(1, sysbench.opt.tables)
end

local function changed_row()
    return sysbench.rand.uniform(1, sysbench.opt.hot_rows > 0 and sysbench.opt.hot_rows or sysbench.opt.rows)
end

local function read()
    connection:query(string.format("SELECT state, payload FROM %s WHERE id = %d", table_name(),
                                   sysbench.rand.uniform(1, sysbench.opt.rows)))
end

local function update()
    changed = changed + 1
    connection:query(string.format("UPDATE %s SET state = state + 1, payload = '%s' WHERE id = %d", table_name(),
                                   payloads[changed % 2 + 1], changed_row()))
end

-- Two rows in one transaction, the lower number first: two transfers wait for one another, but never in a circle.
local function transfer()
    local name, one, two = table_name(), changed_row(), changed_row()
    connection:query("BEGIN")
    connection:query(string.format("UPDATE %s SET state = state - 1 WHERE id = %d", name, math.min(one, two)))
    connection:query(string.format("UPDATE %s SET state = state + 1 WHERE id = %d", name, math.max(one, two)))
    connection:query("COMMIT")
end

local actions = {[READ] = read, [UPDATE] = update, [TRANSFER] = transfer}

local function choose()
    local opt = sysbench.opt
    local draw = sysbench.rand.uniform_double() * (opt.read + opt.update + opt.transfer)
    if draw < opt.read then return READ end
    if draw < opt.read + opt.update then return UPDATE end
    return TRANSFER
end

-- When the next request begins: now, or when it should; nil where there is none.
local function next_start_s()
    local now_s = farm.now_s()
    local start_s = now_s
    if open_loop then
        start_s, deadline_s = farm.next_arrival_s()
        now_s = farm.now_s()
        if start_s > now_s then farm.sleep_s(start_s - now_s) end
    end
    return math.max(start_s, now_s) < deadline_s and start_s or nil
end

function event(thread)
    local start_s = next_start_s()
    if not start_s then return true end
    if not connection then
        connection = farm.connect()
        if not connection then
            log.add(READ, start_s, 1)
            farm.sleep_s(REFUSED_PAUSE_S)
        end
        return
    end
    local operation = choose()
    log.add(operation, start_s, farm.attempt(actions[operation]))
end
