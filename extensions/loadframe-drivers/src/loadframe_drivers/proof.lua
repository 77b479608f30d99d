-- Whether names without a schema are looked up in ours alone, on each server that connections are shared out over. Started
-- by sysbench.py before scripts that are not ours, which name no schema.

sysbench.cmdline.options = {
    proof = {"an expression that is 1 where they are", ""},
    servers = {"how many servers there are", 1},
}

local function prove()
    local driver = sysbench.sql.driver()
    for _ = 1, sysbench.opt.servers do
        local connection = driver:connect()
        if tonumber(connection:query_row("SELECT " .. sysbench.opt.proof)) ~= 1 then
            error("tables are looked up in another schema", 0)
        end
        connection:disconnect()
    end
end

sysbench.cmdline.commands = {prove = {prove}}
