"""Forecasts from measurements at low loads, and their scoring. Pure: records in, records out.

resources   which resources a run's steps tell of
demands     what a request needs of each, and how that grows: draws
system      the draws as systems: throughput, saturation
latency     p95 latency of such a system
refusal     when the data cannot carry a forecast
forecasting all of it together: observations -> Forecast
scoring     a forecast beside what was measured later; calibration
"""
