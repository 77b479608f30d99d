from loadframe.knowledge.metric import requests

AGREEMENTS = (requests("squid.requests", also=("squid.",)),)
