"""The register of known documents: every document of raw/ is in it, and each entry can be traced to
a search.
"""

from __future__ import annotations

from tests.conftest import HISTORIES, Query

STATED = "SELECT unnest(string_split(documents, ' ')) FROM detail.register"


def test_every_document_of_others_is_in_the_register(query: Query) -> None:
    # the register is about IPUs, which no page of another vendor has
    known = f"""
        SELECT document_id FROM documents
        WHERE kind <> 'run' AND publisher <> 'ipu-results' AND document_id NOT IN {HISTORIES}
    """
    assert query(f"{known} EXCEPT {STATED}") == []
    assert query(f"{STATED} EXCEPT SELECT document_id FROM documents") == []


def test_entries_in_the_record_and_only_they_name_documents(query: Query) -> None:
    assert (
        query(
            "SELECT register_id FROM detail.register"
            " WHERE (status = 'in the record') <> (documents IS NOT NULL)"
        )
        == []
    )
    assert query("SELECT count(*) >= 90 FROM detail.register") == [(True,)]


def test_every_entry_names_the_searches_that_found_it(query: Query) -> None:
    named = "SELECT unnest(string_split(found_by, ' ')) FROM detail.register"
    assert query(f"{named} EXCEPT SELECT search_id FROM detail.register_searches") == []


def test_reasons_are_stated_per_entry(query: Query) -> None:
    shared = "SELECT reason FROM detail.register WHERE status <> 'in the record'"
    assert query(f"{shared} GROUP BY 1 HAVING count(*) > 4") == []
