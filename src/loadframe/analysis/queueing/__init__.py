"""Queueing: what throughput and response time must be, given the seconds of each resource that a request needs.

laws          utilisation law
mva           closed networks of one class: exact and Schweitzer's mean value analysis, several servers
convolution   closed networks whose stations work at any speed that depends on their queue: exact, in logarithms

Symbols: N requests circulate (population), Z seconds think time (think_s), D_k seconds of station k per request
(demands_s), m_k servers (servers), X requests per second (throughput), R seconds in the system (response_s), R_k at
station k (residence_s), Q_k requests there (queue), U_k share of the station's servers in use (utilization).
Sources: Lazowska, Zahorjan, Graham, Sevcik, "Quantitative System Performance" (1984); Jain, "The Art of Computer
Systems Performance Analysis" (1991); Bolch, Greiner, de Meer, Trivedi, "Queueing Networks and Markov Chains" (2006).
"""
