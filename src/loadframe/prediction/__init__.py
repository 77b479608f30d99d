"""Forecasts from measurements at low loads, and their scoring. Pure: records in, records out.

resources   which resources a run's steps tell of
demands     what a request needs of each, and how that grows: draws
system      the draws as systems: throughput, saturation
candidates  simple models of the throughput beyond what was seen
pool        the candidates weighed by how well each foretold, and their common forecast
library     what forecasts from curves of real servers came to: data of this package, for weights and intervals
saturating  what is used up first, and the most that can be had
latency     p95 latency of such a system
refusal     when the data cannot carry a forecast
forecasting all of it together: observations -> Forecast
scoring     a forecast next to what was measured later; calibration on this machine
"""
