-- What both render-farm scripts share in addition to sysbench.lua: the names of a job's tables, and what is done to a job.
-- Loaded with dofile by render_farm.lua and render_farm_burst.lua; each sysbench thread has its own copy.

local farm = dofile(debug.getinfo(1, "S").source:match("^@?(.*/)") .. "sysbench.lua")

farm.options.schema = {"where the tables are", ""}
farm.options.tables = {"kinds of table that each job keeps, separated by commas", "job"}
farm.options.engine = {"storage engine of the tables", "MyISAM"}
farm.options.filled = {"when a table has its rows: as it is made (made), or by a second statement (after)", "made"}

local kinds = nil

function farm.table(name)
    return sysbench.opt.schema .. "." .. name
end

-- The names of the tables of one job, in the order in which they are created.
function farm.tables_of(job)
    if kinds == nil then
        kinds = {}
        for kind in sysbench.opt.tables:gmatch("[^,]+") do kinds[#kinds + 1] = kind end
    end
    local names = {}
    for i, kind in ipairs(kinds) do names[i] = farm.table(kind .. "_" .. job) end
    return names
end

function farm.create_job(job)
    local template = farm.table("template")
    for _, name in ipairs(farm.tables_of(job)) do
        if sysbench.opt.filled == "after" then
            farm.query("CREATE TABLE %s LIKE %s", name, template)
            farm.query("INSERT INTO %s SELECT * FROM %s", name, template)
        else
            farm.query("CREATE TABLE %s (PRIMARY KEY (id)) ENGINE = %s SELECT * FROM %s",
                       name, sysbench.opt.engine, template)
        end
    end
end

-- Reads every row of every table of the job.
function farm.read_job(job)
    local parts = {}
    for i, name in ipairs(farm.tables_of(job)) do parts[i] = "SELECT id, state, payload FROM " .. name end
    farm.query(table.concat(parts, " UNION ALL "))
end

return farm
