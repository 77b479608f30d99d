-- oltp: short transactions on a few large tables, for sysbench 1.0. Started by oltp.py, which makes the tables.

local driver = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "sysbench.lua")

driver.declare {
    schema = {"where the tables are", ""},
    tables = {"number of tables", 1},
    rows = {"rows in each table", 1},
    hot_rows = {"updates and transfers choose among this many rows of a table; 0: among all", 0},
    payload_bytes = {"payload that an update writes again", 100},
    read = {"weight of read in the mix", 1},
    update = {"weight of update in the mix", 1},
    transfer = {"weight of transfer in the mix", 1},
}

-- In the order of Workload.operations.
local READ, UPDATE, TRANSFER = 0, 1, 2

local loop, weights
local payloads, changed

function thread_init(thread)
    driver.connected()
    weights = {sysbench.opt.read, sysbench.opt.update, sysbench.opt.transfer}
    -- Two payloads by turns: a row that is written as it is costs a server nothing.
    payloads = {string.rep("x", sysbench.opt.payload_bytes), string.rep("y", sysbench.opt.payload_bytes)}
    changed = thread
    loop = driver.loop(thread)
end

function thread_done()
    loop.close()
    driver.disconnect()
end

local function table_name()
    return sysbench.opt.schema .. ".oltp_" .. sysbench.rand.uniform(1, sysbench.opt.tables)
end

local function changed_row()
    return sysbench.rand.uniform(1, sysbench.opt.hot_rows > 0 and sysbench.opt.hot_rows or sysbench.opt.rows)
end

local actions = {}

actions[READ] = function()
    driver.query("SELECT state, payload FROM %s WHERE id = %d", table_name(),
                 sysbench.rand.uniform(1, sysbench.opt.rows))
end

actions[UPDATE] = function()
    changed = changed + 1
    driver.query("UPDATE %s SET state = state + 1, payload = '%s' WHERE id = %d", table_name(),
                 payloads[changed % 2 + 1], changed_row())
end

-- Two rows in one transaction, the lower number first: two transfers wait for one another, but never in a circle.
actions[TRANSFER] = function()
    local name, row, other = table_name(), changed_row(), changed_row()
    driver.query("BEGIN")
    driver.query("UPDATE %s SET state = state - 1 WHERE id = %d", name, math.min(row, other))
    driver.query("UPDATE %s SET state = state + 1 WHERE id = %d", name, math.max(row, other))
    driver.query("COMMIT")
end

local function request()
    local operation = driver.choose(weights)
    return operation, driver.attempt(actions[operation])
end

function event()
    return loop.once(driver.connected, request)
end
