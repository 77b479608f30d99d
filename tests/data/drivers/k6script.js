// Virtual users who ask for a page, whether it is there or not.
import http from 'k6/http';

http.setResponseCallback(http.expectedStatuses({ min: 200, max: 499 }));

export default function () {
  http.get(`${__ENV.LOADFRAME_URL}/one`, { tags: { name: 'page' } });
  http.post(`${__ENV.LOADFRAME_URL}/search`, { q: '1' });
}
