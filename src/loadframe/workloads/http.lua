-- http: GET requests for objects whose contents are known, for wrk. Started by http_driver.py.
-- A thread has one connection, so that each answer is the answer to the thread's last request.

local ffi = require("ffi")
local driver = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "driver.lua")

ffi.cdef [[
typedef struct { double up_to; uint64_t offset; uint64_t size; } loadframe_object;
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
local GET = 0
-- In the order of http_driver.OUTCOMES.
local DONE, NO_ANSWER, WRONG_STATUS, WRONG_LENGTH, WRONG_BYTES = 0, 1, 2, 3, 4
-- A thread whose connection is refused or cut asks again after this long; each time is a request that failed.
local REFUSED_PAUSE_S = 0.01

local threads = 0

-- In wrk's main state: number the threads.
function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

local log, sizes, objects, count, contents
local all_threads, ended_path, open_loop, checked, compared, tail
local object, path, paths, start_s, deadline_s
local size = ffi.new("uint64_t[1]")
local pending, over, verified, answered, complained = false, false, false, nil, {}

local function map(file_path)
    local file = C.loadframe_open(file_path, O_RDONLY)
    local length = C.loadframe_lseek(file, 0, SEEK_END)
    if length <= 0 then error("cannot read " .. file_path) end
    local place = C.loadframe_mmap(nil, length, PROT_READ, MAP_SHARED, file, 0)
    if ffi.cast("intptr_t", place) == -1 then error("cannot map " .. file_path) end
    C.loadframe_close(file)
    return place, tonumber(length)
end

-- arguments: the step's folder, how many threads there are, the table of objects, their contents, open or closed, what
-- of an answer is checked, one in how many is compared, keep-alive or close, a file with a path in each line ("-": the
-- objects have our own).
function init(arguments)
    local folder, table_path, contents_path, loop, connection, paths_path
    folder, all_threads, table_path, contents_path, loop, checked, compared, connection, paths_path = unpack(arguments)
    all_threads, compared, open_loop = tonumber(all_threads), tonumber(compared), loop == "open"
    local place, length = map(table_path)
    objects = ffi.cast("const loadframe_object *", place)
    count = length / ffi.sizeof("loadframe_object")
    contents = ffi.cast("const char *", (map(contents_path)))
    tail = string.format(" HTTP/1.1\r\nHost: %s\r\n%s\r\n", wrk.headers["Host"],
                         connection == "close" and "Connection: close\r\n" or "")
    if paths_path ~= "-" then
        paths = {}
        for line in io.lines(paths_path) do paths[#paths + 1] = line end
    end
    -- Threads begin to count at different places, as in a short step none of them may come to `compared` answers.
    answered = math.floor(number * compared / all_threads)
    ended_path = folder .. "/ended"
    math.randomseed(number + driver.now_s() * 1e6)
    sizes = driver.open_records(string.format("%s/bytes-%d.log", folder, number), open_loop)
    log = driver.open_log(string.format("%s/requests-%d.log", folder, number), open_loop)
end

-- An object by its popularity; up_to adds up the weights.
local function draw()
    local weight = math.random() * objects[count - 1].up_to
    local low, high = 0, count - 1
    while low < high do
        local middle = math.floor((low + high) / 2)
        if objects[middle].up_to > weight then high = middle else low = middle + 1 end
    end
    return low
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
        start_s, deadline_s = driver.next_arrival_s()
    else
        start_s = after_s
    end
    if math.max(start_s, after_s) >= deadline_s then
        finish()
        return false
    end
    object = draw()
    path = paths and paths[object + 1] or string.format("/objects/%d/%d", math.floor(object / 1000), object)
    return true
end

local function add(outcome, bytes)
    size[0] = bytes
    sizes:write(ffi.string(size, 8))
    return log.add(GET, start_s, outcome)
end

-- Each kind of wrong answer once: what a driver prints is shown where nothing succeeds.
local function complain(outcome, words)
    if complained[outcome] then return end
    complained[outcome] = true
    io.stderr:write(string.format("FATAL: %s: %s\n", path, words))
end

function request()
    if not verified then  -- wrk asks for one in its main thread, to see whether it is well formed
        verified = true
        if number == 0 then return "GET /" .. tail end
    end
    if over then return "" end
    local ready = true
    if pending then
        pending = false
        add(NO_ANSWER, 0)
        driver.sleep_s(REFUSED_PAUSE_S)
        ready = prepare(driver.now_s())
    elseif start_s == nil then
        ready = prepare(driver.now_s())
    end
    if not ready then return "" end
    local early_s = start_s - driver.now_s()
    if early_s > 0 then driver.sleep_s(early_s) end
    pending = true
    return "GET " .. path .. tail
end

local function judge(status, body)
    if status ~= 200 then
        complain(WRONG_STATUS, "status " .. status)
        return WRONG_STATUS
    end
    if checked == "status" then return DONE end
    local wanted = tonumber(objects[object].size)
    if #body ~= wanted then
        complain(WRONG_LENGTH, string.format("%d bytes instead of %d", #body, wanted))
        return WRONG_LENGTH
    end
    if checked == "length" then return DONE end
    answered = answered + 1
    if answered % compared == 0 and C.loadframe_memcmp(body, contents + objects[object].offset, #body) ~= 0 then
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
