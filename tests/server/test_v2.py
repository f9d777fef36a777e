"""The Open Inference Protocol, version 2: by hand, and with the client of Triton."""

import gzip
import io
import json
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("fastapi")

URL = "/v2/models/keywords/infer"
LENGTH = "Inference-Header-Content-Length"


@pytest.fixture(scope="module")
def X(emoji):
    return np.asarray(emoji.testing()[0][:3], np.float32)


@pytest.fixture(scope="module")
def told(app, X):
    """What the model itself answers."""
    model = app.state.latem.shelf.get("keywords").model
    return model.answer(X, "unseen", top=5)


@pytest.fixture(scope="module")
def picture(emoji):
    from PIL import Image

    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def tensor(X, **more):
    return {"name": "features", "datatype": "FP32", "shape": list(X.shape), **more}


def outputs(answer):
    return {one["name"]: one for one in answer["outputs"]}


# -- what there is --------------------------------------------------------------------------------


def test_server(client):
    found = client.get("/v2").json()
    assert found["name"] == "latem"
    assert found["version"]
    assert "binary_tensor_data" in found["extensions"]


@pytest.mark.parametrize(
    "path",
    [
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/keywords/ready",
        "/v2/models/maps/versions/1/ready",
    ],
)
def test_ready(client, path):
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/v2/models/maps", "/v2/models/maps/versions/1"])
def test_metadata(client, path, emoji):
    found = client.get(path).json()
    assert found["name"] == "maps"
    assert found["versions"] == ["1"]
    assert found["platform"] == "latem_latem"
    width = emoji.features.shape[1]
    assert {"name": "features", "datatype": "FP32", "shape": [-1, width]} in found["inputs"]
    assert {"name": "pictures", "datatype": "BYTES", "shape": [-1]} in found["inputs"]
    assert {"name": "names", "datatype": "BYTES", "shape": [-1, -1]} in found["outputs"]
    assert {"name": "verdicts", "datatype": "BYTES", "shape": [-1]} in found["outputs"]


@pytest.mark.parametrize(
    "path",
    ["/v2/models/nobody", "/v2/models/nobody/ready", "/v2/models/maps/versions/7", "/v2/odd"],
)
def test_missing(client, path):
    found = client.get(path)
    assert found.status_code == 404
    assert found.json()["error"].endswith(".")


# -- inference ------------------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("url", [URL, "/v2/models/keywords/versions/1/infer"])
def test_infer(client, X, told, url, nested):
    data = X.tolist() if nested else X.ravel().tolist()
    found = client.post(url, json={"id": "42", "inputs": [tensor(X, data=data)]})
    assert found.status_code == 200, found.text
    assert found.json()["id"] == "42"
    assert found.json()["model_name"] == "keywords"
    assert found.json()["model_version"] == "1"
    values = outputs(found.json())
    assert list(values) == ["names", "scores", "probabilities", "verdicts", "strangeness"]
    assert values["names"]["shape"] == [3, 5]
    assert values["names"]["datatype"] == "BYTES"
    assert values["names"]["data"] == [str(name) for one in told for name in one.names]
    np.testing.assert_allclose(
        values["scores"]["data"], np.ravel([one.scores for one in told]), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        values["probabilities"]["data"], np.ravel([one.probabilities for one in told]), rtol=1e-3
    )
    assert values["verdicts"]["data"] == [one.verdict for one in told]
    assert values["strangeness"]["shape"] == [3]


def test_without_id(client, X):
    assert "id" not in client.post(URL, json={"inputs": [tensor(X, data=X.tolist())]}).json()


def test_outputs_are_chosen_and_in_order(client, X):
    wanted = {"inputs": [tensor(X, data=X.tolist())], "outputs": [{"name": "scores"}]}
    assert list(outputs(client.post(URL, json=wanted).json())) == ["scores"]
    wanted["outputs"] = [{"name": "strangeness"}, {"name": "names"}]
    assert list(outputs(client.post(URL, json=wanted).json())) == ["strangeness", "names"]


def test_parameters(client, X, emoji):
    names = list(emoji.split().test[:2])
    for classes in (names, json.dumps(names)):
        wanted = {
            "inputs": [tensor(X, data=X.tolist())],
            "parameters": {"classes": classes, "top": 2},
        }
        found = client.post(URL, json=wanted)
        assert found.status_code == 200, found.text
        values = outputs(found.json())["names"]
        assert values["shape"] == [3, 2]
        assert set(values["data"]) == set(names)


@pytest.mark.parametrize("datatype", ["FP16", "FP64", "INT8", "UINT8", "INT64"])
def test_other_datatypes(client, X, datatype):
    dtype = {"FP16": "f2", "FP64": "f8", "INT8": "i1", "UINT8": "u1", "INT64": "i8"}[datatype]
    whole = X.astype(dtype)
    in_json = {**tensor(X), "datatype": datatype, "data": whole.tolist()}
    raw = whole.astype(f"<{dtype}").tobytes()
    in_bytes = {**tensor(X), "datatype": datatype, "parameters": {"binary_data_size": len(raw)}}
    head = json.dumps({"inputs": [in_bytes]}).encode()
    one = client.post(URL, json={"inputs": [in_json]})
    two = client.post(URL, content=head + raw, headers={LENGTH: str(len(head))})
    assert one.status_code == two.status_code == 200, one.text + two.text
    assert outputs(one.json())["names"] == outputs(two.json())["names"]


def test_binary_both_ways(client, X, told):
    raw = X.astype("<f4").tobytes()
    head = json.dumps(
        {
            "inputs": [tensor(X, parameters={"binary_data_size": len(raw)})],
            "outputs": [
                {"name": "names", "parameters": {"binary_data": True}},
                {"name": "verdicts", "parameters": {"binary_data": False}},
                {"name": "scores", "parameters": {"binary_data": True}},
            ],
        }
    ).encode()
    found = client.post(URL, content=head + raw, headers={LENGTH: str(len(head))})
    assert found.status_code == 200, found.text
    n = int(found.headers[LENGTH])
    values, tail = outputs(json.loads(found.content[:n])), found.content[n:]
    sizes = [values[name]["parameters"]["binary_data_size"] for name in ("names", "scores")]
    assert sum(sizes) == len(tail)
    assert "data" not in values["names"]
    assert values["verdicts"]["data"] == [one.verdict for one in told]
    names, place = [], 0
    while place < sizes[0]:
        (length,) = struct.unpack_from("<I", tail, place)
        names.append(tail[place + 4 : place + 4 + length].decode())
        place += 4 + length
    assert names == [str(name) for one in told for name in one.names]
    scores = np.frombuffer(tail[sizes[0] :], "<f4")
    np.testing.assert_allclose(scores, np.ravel([one.scores for one in told]), rtol=1e-4, atol=1e-6)


def test_all_outputs_binary(client, X):
    wanted = {
        "inputs": [tensor(X, data=X.tolist())],
        "parameters": {"binary_data_output": True},
        "outputs": [{"name": "scores", "parameters": {"binary_data": False}}, {"name": "names"}],
    }
    found = client.post(URL, json=wanted)
    values = outputs(json.loads(found.content[: int(found.headers[LENGTH])]))
    assert "data" in values["scores"]
    assert values["names"]["parameters"]["binary_data_size"] > 0


@pytest.mark.parametrize(("how", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_requests(client, X, how, packed):
    body = packed(json.dumps({"inputs": [tensor(X, data=X.tolist())]}).encode())
    found = client.post(
        URL, content=body, headers={"Content-Encoding": how, "Content-Type": "application/json"}
    )
    assert found.status_code == 200, found.text
    cut = client.post(URL, content=body[:-20], headers={"Content-Encoding": how})
    assert cut.status_code == 400
    assert "cut short" in cut.json()["error"]


def test_pictures(client, picture):
    import base64

    text = base64.b64encode(picture).decode()
    wanted = {"name": "pictures", "datatype": "BYTES", "shape": [2], "data": [text, text]}
    found = client.post(URL, json={"inputs": [wanted]})
    assert found.status_code == 200, found.text
    assert outputs(found.json())["names"]["shape"] == [2, 5]
    raw = struct.pack("<I", len(picture)) + picture
    del wanted["data"]
    wanted |= {"shape": [1], "parameters": {"binary_data_size": len(raw)}}
    head = json.dumps({"inputs": [wanted]}).encode()
    again = client.post(URL, content=head + raw, headers={LENGTH: str(len(head))})
    names = outputs(again.json())["names"]["data"]
    assert names == outputs(found.json())["names"]["data"][:5]


# -- errors ---------------------------------------------------------------------------------------


def refused(client, wanted, status=400, **more):
    if isinstance(wanted, dict):
        found = client.post(URL, json=wanted, **more)
    else:
        found = client.post(URL, content=wanted, **more)
    assert found.status_code == status, found.text
    sentence = found.json()["error"]
    assert sentence == found.json()["detail"]
    assert sentence[-1] in ".?"
    return sentence


def test_errors(client, X):
    data = X.tolist()
    good = tensor(X, data=data)
    assert "one input" in refused(client, {"inputs": [{**good, "name": "odd"}]})
    assert "3840" in refused(client, {"inputs": [{**good, "data": data[:2]}]})
    assert "different lengths" in refused(client, {"inputs": [{**good, "data": [[1], [1, 2]]}]})
    assert "datatype" in refused(client, {"inputs": [{**good, "datatype": "FP8"}]})
    assert "axes" in refused(client, {"inputs": [{**good, "shape": [-1, 5]}]})
    assert "twice" in refused(client, {"inputs": [good, good]})
    assert "no output 'odd'" in refused(client, {"inputs": [good], "outputs": [{"name": "odd"}]})
    assert "takes 1280" in refused(client, {"inputs": [tensor(X[:, :5], data=X[:, :5].tolist())]})
    assert "Did you mean" in refused(
        client, {"inputs": [good], "parameters": {"classes": ["basebal"]}}
    )
    assert "inputs" in refused(client, {"inputs": []}, 422)
    assert "not JSON" in refused(client, b"{", 422)
    assert "needs data" in refused(client, {"inputs": [tensor(X)]})
    assert "base64" in refused(
        client, {"inputs": [{**good, "datatype": "BYTES", "name": "pictures", "data": ["?"]}]}
    )
    assert "Picture 0" in refused(
        client,
        {"inputs": [{"name": "pictures", "datatype": "BYTES", "shape": [1], "data": ["YWJj"]}]},
    )


@pytest.mark.parametrize("length", ["-1", "x", "99999", "1.5", "²", "9" * 5000, ""])
def test_odd_lengths_of_the_head(client, X, length):
    body = json.dumps({"inputs": [tensor(X, data=X.tolist())]}).encode()[:5000]
    sentence = refused(client, body, headers={LENGTH.encode(): length.encode("latin-1")})
    assert "Inference-Header-Content-Length" in sentence


def test_binary_sizes_that_do_not_fit(client, X):
    raw = X.astype("<f4").tobytes()

    def ask(size, tail):
        one = tensor(X, parameters={"binary_data_size": size})
        head = json.dumps({"inputs": [one]}).encode()
        return refused(client, head + tail, headers={LENGTH: str(len(head))})

    assert "bytes are left" in ask(len(raw), raw[:-1])
    assert "behind" in ask(len(raw), raw + b"x")
    assert "bytes" in ask(len(raw) - 4, raw[:-4])
    assert "number of bytes" in ask(-1, raw)
    assert "number of bytes" in ask(True, raw)


def test_unknown_encodings(client):
    refused(client, b"{}", 415, headers={"Content-Encoding": "br"})
    refused(client, b"{}", 400, headers={"Content-Encoding": "gzip"})
    refused(client, b"{}", 415, headers={"Content-Type": "text/html"})


# -- the client of Triton -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def triton(server):
    http = pytest.importorskip("tritonclient.http")
    client = http.InferenceServerClient(f"{server.host}:{server.port}", concurrency=4)
    yield client
    client.close()


@pytest.fixture
def features(X):
    http = pytest.importorskip("tritonclient.http")

    def make(binary):
        found = http.InferInput("features", list(X.shape), "FP32")
        found.set_data_from_numpy(X, binary_data=binary)
        return found

    return make


def test_triton_looks_around(triton):
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("keywords")
    assert triton.is_model_ready("maps", "1")
    assert not triton.is_model_ready("nobody")
    assert triton.get_server_metadata()["name"] == "latem"
    assert triton.get_model_metadata("maps")["inputs"][0]["name"] == "features"


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("packed", [None, "gzip", "deflate"])
def test_triton_infers(triton, features, told, binary, packed):
    import tritonclient.http as http

    wanted = [http.InferRequestedOutput(name, binary_data=binary) for name in ("names", "scores")]
    found = triton.infer(
        "keywords", [features(binary)], outputs=wanted, request_id="7",
        parameters={"top": 3}, request_compression_algorithm=packed,
    )  # fmt: skip
    assert found.get_response()["id"] == "7"
    names = [[str(name) for name in one.names[:3]] for one in told]
    given = found.as_numpy("names")
    assert [[n.decode() if isinstance(n, bytes) else n for n in row] for row in given] == names
    scores = np.array([one.scores[:3] for one in told])
    np.testing.assert_allclose(found.as_numpy("scores"), scores, rtol=1e-4, atol=1e-6)


def test_triton_without_wanted_outputs(triton, features, told):
    found = triton.infer("keywords", [features(True)])
    given = found.as_numpy("verdicts")
    assert [one.decode() for one in given] == [one.verdict for one in told]


def test_triton_asks_several_at_once(triton, features, told):
    waiting = [triton.async_infer("keywords", [features(True)]) for _ in range(8)]
    for one in waiting:
        best = one.get_result().as_numpy("names")[:, 0]
        assert [name.decode() for name in best] == [str(answer.names[0]) for answer in told]


def test_triton_sends_pictures(triton, picture):
    import tritonclient.http as http

    wanted = http.InferInput("pictures", [1], "BYTES")
    wanted.set_data_from_numpy(np.array([picture], object))
    assert triton.infer("keywords", [wanted]).as_numpy("names").shape == (1, 5)


def test_triton_is_told_what_is_wrong(triton, X):
    import tritonclient.http as http
    from tritonclient.utils import InferenceServerException

    narrow = http.InferInput("features", [1, 5], "FP32")
    narrow.set_data_from_numpy(np.ascontiguousarray(X[:1, :5]))
    with pytest.raises(InferenceServerException, match="takes 1280 features per image, not 5"):
        triton.infer("keywords", [narrow])
    with pytest.raises(InferenceServerException, match="There is no model 'nobody'; there are"):
        triton.infer("nobody", [narrow])
