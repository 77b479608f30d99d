"""Users who ask for a page, whether it is there or not."""

from locust import HttpUser, task


class Reader(HttpUser):
    @task(4)
    def page(self) -> None:
        with self.client.get("/one", name="page", catch_response=True) as answer:
            if answer.status_code:
                answer.success()

    @task
    def search(self) -> None:
        with self.client.post("/search", data="q=1", catch_response=True) as answer:
            if answer.status_code:
                answer.success()
