-- http: requests whose answers are known, for wrk. Started by http_driver.py.
-- A thread has one connection, so that each answer is the answer to the thread's last request.

local ffi = require("ffi")
local driver = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "driver.lua")

-- As in objects.py and http_driver.py.
ffi.cdef [[
typedef struct { double up_to; uint64_t offset; uint64_t size; } loadframe_object;
typedef struct { uint64_t offset; uint64_t size; } loadframe_piece;
typedef struct { uint64_t asks; uint64_t sessions; } loadframe_block;
typedef struct {
    double up_to; double think_s; loadframe_piece head; loadframe_piece body; loadframe_piece wanted;
    loadframe_piece contains; loadframe_piece fails; uint64_t shortest; uint64_t longest;
    uint32_t operation; uint16_t lowest; uint16_t highest; uint32_t checked; uint32_t repeatable;
} loadframe_ask;
int loadframe_memcmp(const void *first, const void *second, unsigned long size) __asm__("memcmp");
int loadframe_kill(int process, int signal) __asm__("kill");
int loadframe_getpid() __asm__("getpid");
]]

local C = ffi.C
local SIGINT = 2
-- In the order of http_driver.OUTCOMES.
local DONE, NO_ANSWER, WRONG_STATUS, WRONG_LENGTH, WRONG_BYTES, WRONG_WORDS = 0, 1, 2, 3, 4, 5
-- In the order of http_driver.CHECKED.
local CHECKED = { status = 0, length = 1, bytes = 2, size = 3 }
-- A thread whose connection is refused or cut asks again after this long; each time is a request that failed.
local REFUSED_PAUSE_S = 0.01
-- A server may close a connection on which nothing came for so long. What is sent then has not been read, and is sent
-- once more, as browsers do (RFC 9112, 9.3.1).
local IDLE_S = 1
-- Requests of a block that is no longer than this are put together once.
local KEPT_BYTES = 1048576

local threads = 0

-- In wrk's main state: number the threads.
function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

local log, sizes, records, count, contents, block, session
local all_threads, ended_path, open_loop, order, checked, compared, tail
local think_s, exponential = 0, false
local at, ask, place, start_s, deadline_s, answered_s, idle
local kept, texts, size = false, {}, ffi.new("uint64_t[1]")
local contained, failing = {}, {}
local pending, over, verified, answered, complained = false, false, false, nil, {}

local function piece(where) return ffi.string(block + where.offset, where.size) end

-- The requests and this thread's session in a block of http_driver.py; its descriptor is that of all threads.
local function map_block(descriptor)
    local length
    block, length = driver.map(descriptor)
    local first = ffi.cast("const loadframe_block *", block)
    records, count = ffi.cast("const loadframe_ask *", first + 1), tonumber(first.asks)
    local sessions = ffi.cast("const loadframe_piece *", records + count)
    session = number < tonumber(first.sessions) and piece(sessions[number]) or ""
    kept = length <= KEPT_BYTES
end

-- arguments: the step's folder, how many threads there are, the table of objects ("-": the requests are in a block),
-- the contents of answers, open or closed, what of an answer is checked of objects, one in how many is compared,
-- keep-alive or close, the descriptor of the block, how requests follow ("draw": by their weights; "walk": one after the
-- other; "replay": as their arrivals say), for how long users think (s), fixed or exponential.
function init(arguments)
    local folder, table_path, contents_path, loop, connection, descriptor, spread
    folder, all_threads, table_path, contents_path, loop, checked, compared, connection, descriptor, order, think_s, spread =
        unpack(arguments)
    all_threads, compared, think_s = tonumber(all_threads), tonumber(compared), tonumber(think_s)
    open_loop, exponential = loop == "open", spread == "exponential"
    contents = driver.map_path(contents_path)
    if table_path == "-" then
        map_block(tonumber(descriptor))
    else
        local length
        records, length = driver.map_path(table_path)
        records, count = ffi.cast("const loadframe_object *", records), length / ffi.sizeof("loadframe_object")
        checked = CHECKED[checked]
    end
    tail = string.format(" HTTP/1.1\r\nHost: %s\r\n%s\r\n", wrk.headers["Host"],
                         connection == "close" and "Connection: close\r\n" or "")
    -- Threads begin to count at different places, as in a short step none of them may come to `compared` answers.
    answered = math.floor(number * compared / all_threads)
    ended_path = folder .. "/ended"
    math.randomseed(number + driver.now_s() * 1e6)
    place = math.random(0, count - 1)
    answered_s = driver.now_s()
    sizes = driver.open_records(string.format("%s/bytes-%d.log", folder, number), open_loop)
    log = driver.open_log(string.format("%s/requests-%d.log", folder, number), open_loop)
end

-- A record by its weight; up_to adds up the weights.
local function draw()
    local weight = math.random() * records[count - 1].up_to
    local low, high = 0, count - 1
    while low < high do
        local middle = math.floor((low + high) / 2)
        if records[middle].up_to > weight then high = middle else low = middle + 1 end
    end
    return low
end

-- What the next request is for. arrived: of a replay, its number.
local function choose(arrived)
    if order == "walk" then
        place = (place + 1) % count
        at = place
    else
        at = order == "replay" and arrived or draw()
    end
    ask = block and records[at] or nil
end

-- How long a user waits before that request.
local function pause_s()
    local mean_s = think_s + (order == "walk" and ask.think_s or 0)
    if mean_s == 0 then return 0 end
    return exponential and -mean_s * math.log(1 - math.random()) or mean_s
end

-- Before the first one: users do not begin at one instant.
local function first_pause_s()
    return exponential and pause_s() or math.random() * pause_s()
end

-- The last thread to end wakes wrk's main thread, which would sleep until its time is up.
local function finish()
    over = true
    log.close()
    sizes:close()
    local ended = io.open(ended_path, "ab")
    ended:write(".")
    ended:flush()
    local all = ended:seek("end") == all_threads
    ended:close()
    wrk.thread:stop()
    if all then C.loadframe_kill(C.loadframe_getpid(), SIGINT) end
end

-- When the next request begins, and for what; false where there is none any more. after_s: the end of the last one.
local function prepare(after_s)
    if open_loop or deadline_s == nil then
        local arrived
        start_s, deadline_s, arrived = driver.next_arrival_s(order == "replay")
        if start_s < deadline_s then choose(arrived) end
        if not open_loop then start_s = start_s + first_pause_s() end
    else
        choose()
        start_s = after_s + pause_s()
    end
    if math.max(start_s, after_s) >= deadline_s then
        finish()
        return false
    end
    return true
end

local function add(outcome, bytes)
    size[0] = bytes
    sizes:write(ffi.string(size, 8))
    answered_s = log.add(ask and ask.operation or 0, start_s, outcome)
    return answered_s
end

local function path_of(object) return string.format("/objects/%d/%d", math.floor(object / 1000), object) end

-- The whole request.
local function text()
    if ask == nil then return "GET " .. path_of(at) .. tail end
    local whole = texts[at] or piece(ask.head) .. session .. "\r\n" .. piece(ask.body)
    if kept then texts[at] = whole end
    return whole
end

-- The outcome of a wrong answer. Each kind is printed once: what a driver prints is shown where nothing succeeds.
local function wrong(outcome, ...)
    if not complained[outcome] then
        complained[outcome] = true
        local asked = ask and piece(ask.head):match("^(.-) HTTP/") or path_of(at)
        io.stderr:write("FATAL: ", asked, ": ", string.format(...), "\n")
    end
    return outcome
end

function request()
    if not verified then  -- wrk asks for one in its main thread, to see whether it is well formed
        verified = true
        if number == 0 then return "GET /" .. tail end
    end
    if over then return "" end
    if pending and idle then
        idle = false
        return text()
    end
    if pending then
        pending = false
        add(NO_ANSWER, 0)
        driver.sleep_s(REFUSED_PAUSE_S)
        start_s = nil
    end
    if start_s == nil and not prepare(driver.now_s()) then return "" end
    local now_s = driver.now_s()
    if start_s > now_s then
        driver.sleep_s(start_s - now_s)
        now_s = start_s
    end
    idle = now_s - answered_s > IDLE_S and (ask == nil or ask.repeatable == 1)
    pending = true
    return text()
end

-- The words of a request, read once.
local function words(of, which)
    of[at] = of[at] or piece(ask[which])
    return of[at]
end

local function judge(status, body)
    local lowest, highest, check = 200, 200, checked
    if ask then lowest, highest, check = ask.lowest, ask.highest, ask.checked end
    if status < lowest or status > highest then return wrong(WRONG_STATUS, "status %d", status) end
    if ask then
        local fails, contains = words(failing, "fails"), words(contained, "contains")
        if fails ~= "" and body:find(fails, 1, true) then return wrong(WRONG_WORDS, "its body has %s", fails) end
        if contains ~= "" and not body:find(contains, 1, true) then
            return wrong(WRONG_WORDS, "its body has no %s", contains)
        end
    end
    if check == CHECKED.status then return DONE end
    if check == CHECKED.size then
        local shortest, longest = tonumber(ask.shortest), tonumber(ask.longest)
        if #body >= shortest and #body <= longest then return DONE end
        return wrong(WRONG_LENGTH, "%d bytes, not %d to %d", #body, shortest, longest)
    end
    local wanted = ask and ask.wanted or records[at]
    if #body ~= tonumber(wanted.size) then
        return wrong(WRONG_LENGTH, "%d bytes instead of %d", #body, tonumber(wanted.size))
    end
    if check == CHECKED.length then return DONE end
    answered = answered + 1
    if answered % compared == 0 and C.loadframe_memcmp(body, contents + wanted.offset, #body) ~= 0 then
        return wrong(WRONG_BYTES, "other bytes than there should be")
    end
    return DONE
end

function response(status, headers, body)
    if not pending then return end
    local outcome = judge(status, body)
    pending = false
    prepare(add(outcome, #body))
end
