-- oltp: short transactions on a few large tables, for sysbench 1.0. Started by oltp.py, which makes the tables.

local driver = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "sysbench.lua")

sysbench.cmdline.options = {
    folder = driver.options.folder,
    seconds = driver.options.seconds,
    open_loop = driver.options.open_loop,
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

local connection, loop
local payloads, changed

function thread_init(thread)
    connection = driver.connect()
    -- Two payloads by turns: a row that is written as it is costs a server nothing.
    payloads = {string.rep("x", sysbench.opt.payload_bytes), string.rep("y", sysbench.opt.payload_bytes)}
    changed = thread
    loop = driver.loop(thread)
end

function thread_done()
    loop.close()
    if connection then connection:disconnect() end
end

local function table_name()
    return sysbench.opt.schema .. ".oltp_" .. sysbench.rand.uniform(1, sysbench.opt.tables)
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

local function connected()
    connection = connection or driver.connect()
    return connection ~= nil
end

local function request()
    local operation = choose()
    return operation, driver.attempt(actions[operation])
end

function event()
    return loop.once(connected, request)
end
