"""Clients that keep a server busy: many connections in one loop, with requests made in advance."""

import selectors
import socket
import time


class Client:
    """A connection that sends a request as soon as the last one is answered."""

    def __init__(self, place, requests, first):
        self.requests, self.number = requests, first
        self.socket = socket.create_connection(place, 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received, self.wanted = bytearray(), None
        self.times, self.failures = [], []

    def send(self):
        self.number = (self.number + 1) % len(self.requests)
        self.received.clear()
        self.wanted = None
        self.sent = time.perf_counter()
        self.socket.sendall(self.requests[self.number])

    def read(self):
        """Whether an answer is whole."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionError("The server has closed a connection.")
        self.received += part
        if self.wanted is None:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = bytes(self.received[:end]).lower()
            length = head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            self.wanted = end + 4 + int(length or 0)
        if len(self.received) < self.wanted:
            return False
        self.times.append(time.perf_counter() - self.sent)
        if not self.received.startswith(b"HTTP/1.1 200"):
            self.failures.append(bytes(self.received[:400]).decode("latin-1"))
        return True


def load(place, requests, n_clients, seconds):
    """Ask for some seconds.

    Parameters
    ----------
    place : (host, port)
    requests : list of bytes
    n_clients : int
    seconds : float

    Returns
    -------
    dict
        `rate` in answers per second, `p50` and `p99` in ms, `failures` (texts), `n`, and `cpu`,
        the share of one core that the clients took.
    """
    clients = [Client(place, requests, i) for i in range(n_clients)]
    start, used = time.perf_counter(), time.process_time()
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send()
        waiting = len(clients)
        while waiting:
            for key, _ in selector.select(60):
                client = key.data
                if not client.read():
                    continue
                if time.perf_counter() - start < seconds:
                    client.send()
                else:
                    selector.unregister(client.socket)
                    client.socket.close()
                    waiting -= 1
    took = time.perf_counter() - start
    cpu = (time.process_time() - used) / took
    times = sorted(second for client in clients for second in client.times)
    return {
        "rate": len(times) / took,
        "n": len(times),
        "p50": 1e3 * times[len(times) // 2],
        "p99": 1e3 * times[int(0.99 * (len(times) - 1))],
        "cpu": cpu,
        "failures": [text for client in clients for text in client.failures],
    }


def request(path, body, kind="application/json"):
    """A request as bytes."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def form(path, files):
    """A request that sends pictures as a browser does."""
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="pictures"; filename="{i}.jpg"\r\n'
        f"Content-Type: image/jpeg\r\n\r\n".encode()
        + content
        + b"\r\n"
        for i, content in enumerate(files)
    ]
    return request(path, b"".join(parts) + b"--x--\r\n", "multipart/form-data; boundary=x")
