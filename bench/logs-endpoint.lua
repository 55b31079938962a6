-- The script of wrk for bench/logs-endpoint.ts: `wrk … -s logs-endpoint.lua URL -- PLAN THREADS`. Each thread has one connection, so each answer
-- belongs to the request before it. Each thread requests every THREADSth line of the plan, once. A plan of one line, for the floor, is requested
-- repeatedly by all threads. A line has the path, and the expected totalRecords, itemsInPage, page and bytes of the answer, separated by tabs. An
-- answer that differs is wrong. `done` prints the figures as one line of JSON.

local threads = {}

function setup(thread)
  thread:set('number', #threads)
  table.insert(threads, thread)
end

function init(args)
  plan, at, pages, records, wrong, example = {}, 0, 0, 0, 0, ''
  local all, line = tonumber(args[2]), 0
  for text in io.lines(args[1]) do
    if line % all == number then table.insert(plan, text) end
    line = line + 1
  end
  if line == 1 then only = io.lines(args[1])() end
end

function request()
  at = at + 1
  -- After the end of the plan each answer counts as wrong: requests must not be repeated.
  local path, total, items, page, bytes = (only or plan[at] or '/\t0\t0\t0\t0'):match('^(.-)\t(%d+)\t(%d+)\t(%d+)\t(%d+)$')
  expected = { total = total, items = items, page = page, bytes = tonumber(bytes) }
  return wrk.format('GET', path)
end

function response(status, headers, body)
  local total, items, page = body:sub(1, 200):match('^{"pagination":{"totalRecords":(%d+),"pageSize":%d+,"itemsInPage":(%d+),"page":(%d+)},"data":%[')
  if status == 200 and total == expected.total and items == expected.items and page == expected.page and #body == expected.bytes then
    pages = pages + 1
    records = records + tonumber(items)
  else
    wrong = wrong + 1
    example = only or plan[at] or 'the plan is too short'
  end
end

function done(summary, latency)
  local sum = { pages = 0, records = 0, wrong = 0 }
  local example = ''
  for _, thread in ipairs(threads) do
    for name in pairs(sum) do sum[name] = sum[name] + thread:get(name) end
    if thread:get('wrong') > 0 then example = thread:get('example') end
  end
  local errors = summary.errors
  print(string.format('{"pages":%d,"records":%d,"wrong":%d,"example":"%s","broken":%d,"seconds":%.3f,"bytes":%d,"p50ms":%.2f,"p99ms":%.2f}',
    sum.pages, sum.records, sum.wrong, example:gsub('\t.*', ''), errors.connect + errors.read + errors.write + errors.timeout,
    summary.duration / 1e6, summary.bytes, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
