-- One of sysbench's own scripts, with a request log and the arrivals of an open loop around its events. Started by
-- sysbench.py, which names the script and our own library in the environment: no option has been read yet when it is
-- loaded.

local driver = dofile(os.getenv("LOADFRAME_LUA"))

dofile(os.getenv("LOADFRAME_SCRIPT"))

driver.declare(sysbench.cmdline.options or {})

local init, act, done = thread_init, event, thread_done
local TRANSACTION = 0

local loop
local thread, ready = nil, false

-- Whether the script has its connection and its statements. Refused, it tries again; what else goes wrong is fatal.
local function connected()
    if ready then return true end
    local problem
    ready, problem = pcall(init, thread)
    if not ready and not tostring(problem):find("connection creation failed", 1, true) then error(problem, 0) end
    return ready
end

local function request()
    return TRANSACTION, driver.attempt(act, thread)
end

function thread_init(number)
    thread = number
    connected()
    loop = driver.loop(number)
end

function thread_done()
    loop.close()
    if ready then done(thread) end
end

function event()
    return loop.once(connected, request)
end
