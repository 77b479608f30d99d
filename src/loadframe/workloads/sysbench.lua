-- What all sysbench scripts share in addition to driver.lua: options, the connection of a thread, its log and its loop.
-- Loaded with dofile; each sysbench thread has its own copy.

local driver = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "driver.lua")

-- What every script that uses loop is given.
driver.options = {
    folder = {"where the request logs go", "."},
    seconds = {"how long to work, from the connection on", "1"},
    open_loop = {"1: requests begin when they should, by the arrivals on standard input", 0},
}

-- A thread that is refused a connection asks again after this long; each refusal is a request that failed.
local REFUSED_PAUSE_S = 0.01

-- own: the options of one script, which gets ours too.
function driver.declare(own)
    for name, option in pairs(driver.options) do own[name] = option end
    sysbench.cmdline.options = own
end

-- Whether this thread has a connection. Where the server refused one (all may be taken) it asks for one again.
function driver.connected()
    if driver.connection == nil then
        local made, connection = pcall(function() return sysbench.sql.driver():connect() end)
        driver.connection = made and connection or nil
    end
    return driver.connection ~= nil
end

function driver.disconnect()
    if driver.connection then driver.connection:disconnect() end
end

-- Further values are put into the statement as string.format does.
function driver.query(statement, ...)
    driver.connection:query(select("#", ...) > 0 and statement:format(...) or statement)
end

-- An operation, from 0 on, by the weights of all.
function driver.choose(weights)
    local draw = 0
    for _, weight in ipairs(weights) do draw = draw + weight end
    draw = draw * sysbench.rand.uniform_double()
    for i, weight in ipairs(weights) do
        draw = draw - weight
        if draw < 0 then return i - 1 end
    end
    return 0
end

-- The request log of one thread.
function driver.open_thread_log(thread, watched)
    return driver.open_log(string.format("%s/requests-%d.log", sysbench.opt.folder, thread), watched)
end

-- sysbench marks errors that a client would simply retry (sysbench.py: OURS) with RESTART_EVENT, and lets the script
-- know. Anything else is fatal and goes up. Returns 0 where the action was done, 1 where it has to be asked again.
function driver.attempt(action, ...)
    local done, problem = pcall(action, ...)
    if done then return 0 end
    if type(problem) ~= "table" or problem.errcode ~= sysbench.error.RESTART_EVENT then error(problem, 0) end
    if sysbench.hooks.before_restart_event then sysbench.hooks.before_restart_event(problem) end
    return 1
end

-- What a thread does until its time is up: requests, each begun when the one before has ended or, in an open loop, when it
-- should. Made when the thread is connected, or has been refused; it counts the time from then on.
function driver.loop(thread)
    local open_loop = sysbench.opt.open_loop ~= 0
    local log = driver.open_thread_log(thread, open_loop)
    local deadline_s = driver.now_s() + tonumber(sysbench.opt.seconds)
    local loop = {close = log.close}

    function loop.over() return driver.now_s() > deadline_s end

    -- When the next request begins; nil where there is none.
    local function next_start_s()
        local now_s = driver.now_s()
        local start_s = now_s
        if open_loop then
            start_s, deadline_s = driver.next_arrival_s()
            now_s = driver.now_s()
            if start_s > now_s then driver.sleep_s(start_s - now_s) end
        end
        return math.max(start_s, now_s) < deadline_s and start_s or nil
    end

    -- One request, for sysbench's event: true where the time is up. connected() says whether there is a connection, and
    -- asks for one where there is none; request() answers operation and outcome, nothing for what is not logged.
    function loop.once(connected, request)
        local start_s = next_start_s()
        if not start_s then return true end
        if connected() then
            local operation, outcome = request()
            if operation then log.add(operation, start_s, outcome) end
        else
            log.add(0, start_s, 1)
            driver.sleep_s(REFUSED_PAUSE_S)
        end
    end

    return loop
end

return driver
