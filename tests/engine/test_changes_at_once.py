"""Changes of one file that are made at the same time."""

import threading

from tests.support.engine import World, path_of


def test_changes_of_different_keys_all_survive(own: World) -> None:
    file = own.collection("docs").add("/m.txt", "Text.", metadata={"kept": 0, "gone": 0})
    url = f"{path_of('docs', '/files')}/{file.id}"
    wanted = {f"k{n}": n for n in range(8)}
    together = threading.Barrier(len(wanted) + 1)

    def change(metadata: object) -> None:
        together.wait()
        assert own.request("PATCH", url, json={"metadata": metadata}).status_code == 200

    changes = [{name: value} for name, value in wanted.items()] + [{"$unset": ["gone"]}]
    threads = [threading.Thread(target=change, args=(one,)) for one in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert own.request("GET", url).json()["metadata"] == {"kept": 0, **wanted}


def test_a_change_that_breaks_a_rule_changes_nothing(own: World) -> None:
    file = own.collection("docs").add("/m.txt", "Text.", metadata={"kept": 0})
    url = f"{path_of('docs', '/files')}/{file.id}"
    body = {"path": "/other.txt", "principals": ["x"], "metadata": {"big": "x" * 262_144}}
    assert own.request("PATCH", url, json=body).status_code == 400
    found = own.request("GET", url).json()
    assert (found["path"], found["metadata"], found["principals"]) == ("/m.txt", {"kept": 0}, [])
