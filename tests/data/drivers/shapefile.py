"""Users by a shape of their own: two for each step of the level."""

import os

from locust import HttpUser, LoadTestShape, task


class Reader(HttpUser):
    @task
    def page(self) -> None:
        self.client.get("/one")


class Size(LoadTestShape):
    def tick(self) -> tuple[int, float]:
        users = 2 * int(os.environ["LOADFRAME_LEVEL"])
        return users, float(users)
