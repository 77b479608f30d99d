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
int loadframe_open(const char *path, int flags) __asm__("open");
int loadframe_close(int file) __asm__("close");
long loadframe_lseek(int file, long offset, int whence) __asm__("lseek");
void *loadframe_mmap(void *at, unsigned long size, int protection, int flags, int file, long offset) __asm__("mmap");
int loadframe_memcmp(const void *one, const void *other, unsigned long size) __asm__("memcmp");
int loadframe_kill(int process, int signal) __asm__("kill");
int loadframe_getpid() __asm__("getpid");
]]

local C = ffi.C
local O_RDONLY, SEEK_END, PROT_READ, MAP_SHARED, SIGINT = 0, 2, 1, 1, 2
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

local function map_file(file)
    local length = C.loadframe_lseek(file, 0, SEEK_END)
    if length <= 0 then error("cannot read a file of the step") end
    local begin = C.loadframe_mmap(nil, length, PROT_READ, MAP_SHARED, file, 0)
    if ffi.cast("intptr_t", begin) == -1 then error("cannot map a file of the step") end
    return ffi.cast("const char *", begin), tonumber(length)
end

local function map(path)
    local file = C.loadframe_open(path, O_RDONLY)
    local begin, length = map_file(file)
    C.loadframe_close(file)
    return begin, length
end

local function piece(where) return ffi.string(block + where.offset, where.size) end

-- The requests and this thread's session in a block of http_driver.py; its descriptor is that of all threads.
local function map_block(descriptor)
    local length
    block, length = map_file(descriptor)
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
    contents = map(contents_path)
    if table_path == "-" then
        map_block(tonumber(descriptor))
    else
        local length
        records, length = map(table_path)
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
    local found = texts[at]
    if found == nil then
        found = piece(ask.head) .. session .. "\r\n" .. piece(ask.body)
        if kept then texts[at] = found end
    end
    return found
end

-- Each kind of wrong answer once: what a driver prints is shown where nothing succeeds.
local function complain(outcome, words)
    if complained[outcome] then return end
    complained[outcome] = true
    local asked = ask and piece(ask.head):match("^(.-) HTTP/") or path_of(at)
    io.stderr:write(string.format("FATAL: %s: %s\n", asked, words))
end

function request()
    if not verified then  -- wrk asks for one in its main thread, to see whether it is well formed
        verified = true
        if number == 0 then return "GET /" .. tail end
    end
    if over then return "" end
    local ready = true
    if pending and idle then
        idle = false
        return text()
    elseif pending then
        pending = false
        add(NO_ANSWER, 0)
        driver.sleep_s(REFUSED_PAUSE_S)
        ready = prepare(driver.now_s())
    elseif start_s == nil then
        ready = prepare(driver.now_s())
    end
    if not ready then return "" end
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
    local found = of[at]
    if found == nil then
        found = piece(ask[which])
        of[at] = found
    end
    return found
end

-- What words in an answer say: why it is wrong, nil where they do not.
local function wrong_words(body)
    local fails, contains = words(failing, "fails"), words(contained, "contains")
    if fails ~= "" and body:find(fails, 1, true) then return "its body has " .. fails end
    if contains ~= "" and not body:find(contains, 1, true) then return "its body has no " .. contains end
end

local function judge(status, body)
    local lowest, highest, check = 200, 200, checked
    if ask then lowest, highest, check = ask.lowest, ask.highest, ask.checked end
    if status < lowest or status > highest then
        complain(WRONG_STATUS, "status " .. status)
        return WRONG_STATUS
    end
    local wrong = ask and wrong_words(body)
    if wrong then
        complain(WRONG_WORDS, wrong)
        return WRONG_WORDS
    end
    if check == CHECKED.status then return DONE end
    if check == CHECKED.size then
        local shortest, longest = tonumber(ask.shortest), tonumber(ask.longest)
        if #body >= shortest and #body <= longest then return DONE end
        complain(WRONG_LENGTH, string.format("%d bytes, not %d to %d", #body, shortest, longest))
        return WRONG_LENGTH
    end
    local wanted = ask and ask.wanted or records[at]
    if #body ~= tonumber(wanted.size) then
        complain(WRONG_LENGTH, string.format("%d bytes instead of %d", #body, tonumber(wanted.size)))
        return WRONG_LENGTH
    end
    if check == CHECKED.length then return DONE end
    answered = answered + 1
    if answered % compared == 0 and C.loadframe_memcmp(body, contents + wanted.offset, #body) ~= 0 then
        complain(WRONG_BYTES, "other bytes than there should be")
        return WRONG_BYTES
    end
    return DONE
end

function response(status, headers, body)
    if not pending then return end
    local outcome = judge(status, body)
    pending = false
    prepare(add(outcome, #body))
end
