from loadframe.knowledge.metric import requests

AGREEMENTS = (requests("varnish.requests", also=("varnish.",)),)
