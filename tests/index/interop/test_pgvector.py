"""PostgreSQL with pgvector takes what was handed over, orders it as we do, and gives it back.

The formats and the SQL are checked against a real server, which comes as a wheel; what needs no
server is checked without.
"""

import numpy as np
import pytest

from postgres import running_postgres
from rankbits.codes import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index import HammingIndex
from rankbits.index.interop import (
    copy_to_postgres,
    from_pgvector_copy,
    from_postgres,
    pgvector_bits,
    pgvector_query,
    pgvector_schema,
    to_pgvector_copy,
    to_pgvector_sql,
)

NAMES = ["codes", 'a "b"; DROP TABLE x; --', "100% of Ünïcode's", "schema.table"]


@pytest.fixture(scope="module")
def server():
    """The address of a PostgreSQL server of this module's own."""
    with running_postgres() as running:
        yield running.get_uri()


@pytest.fixture
def connection(server):
    """A connection whose changes are forgotten after the test."""
    import psycopg

    with psycopg.connect(server) as opened:
        yield opened
        opened.rollback()


def stored(connection, table='"codes"'):
    return dict(connection.execute(f"SELECT id, code::text FROM {table}").fetchall())


def texts(mine):
    return {i: "".join(map(str, bits)) for i, bits in mine.items.items()}


# Without a server


@pytest.mark.parametrize("n_bits", [8, 12, 64, 128])
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_a_file_comes_back_whole(stock, tmp_path, n_bits, binary):
    mine = stock(n_bits)
    to_pgvector_copy(mine.index, tmp_path / "codes", binary=binary)
    assert mine.is_in(from_pgvector_copy(tmp_path / "codes"))
    assert mine.is_in(from_pgvector_copy(str(tmp_path / "codes"), "scan", n_bits=n_bits))
    with pytest.raises(InputError, match=f"n_bits is 5, but .*codes holds codes of {n_bits} bits"):
        from_pgvector_copy(tmp_path / "codes", n_bits=5)


def test_the_two_formats_of_one_item_are_what_the_manual_says(tmp_path):
    index = HammingIndex(12)
    index.add(BinaryCodes.from_bits([[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]]), [258])
    to_pgvector_copy(index, tmp_path / "text")
    assert (tmp_path / "text").read_bytes() == b"258\t101000000011\n"
    to_pgvector_copy(index, tmp_path / "binary", binary=True)
    assert (tmp_path / "binary").read_bytes() == bytes.fromhex(
        "5047434f50590aff0d0a00 00000000 00000000"  # signature, flags, extension
        "0002 00000008 0000000000000102 00000006 0000000c a030"  # fields, lengths, id, bits
        "ffff"
    )


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_more_items_than_a_block_come_back(monkeypatch, stock, tmp_path, binary):
    mine = stock(64)
    for module in ("blocks", "postgres_copy"):
        monkeypatch.setattr(f"rankbits.index.interop.{module}.BLOCK", 7)
    monkeypatch.setattr("rankbits.index.interop.postgres_copy._CHUNK", 200)
    monkeypatch.setattr("rankbits.index.interop.pgvector._FILE_CHUNK", 11)
    to_pgvector_copy(mine.index, tmp_path / "codes", binary=binary)
    assert mine.is_in(from_pgvector_copy(tmp_path / "codes"))


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_a_file_without_items_needs_the_number_of_bits(empty, tmp_path, binary):
    to_pgvector_copy(empty, tmp_path / "codes", binary=binary)
    back = from_pgvector_copy(tmp_path / "codes", n_bits=16)
    assert (len(back), back.n_bits) == (0, 16)
    with pytest.raises(InputError, match=r"n_bits must be given, since .*codes has no codes"):
        from_pgvector_copy(tmp_path / "codes")


def test_every_truncation_of_a_binary_file_is_found(stock, tmp_path):
    to_pgvector_copy(stock(12, n=5).index, tmp_path / "codes", binary=True)
    whole = (tmp_path / "codes").read_bytes()
    for content in [whole[:size] for size in range(1, len(whole))] + [whole + b"\xff"]:
        (tmp_path / "codes").write_bytes(content)
        with pytest.raises(FileFormatError, match="codes"):
            from_pgvector_copy(tmp_path / "codes")


@pytest.mark.parametrize("place", [0, 2, 5, 14, 17, 18, 21])
def test_a_row_unlike_the_first_is_found(tmp_path, stock, place):
    to_pgvector_copy(stock(12, n=9).index, tmp_path / "codes", binary=True)
    content = bytearray((tmp_path / "codes").read_bytes())
    content[19 + 2 * 24 + place] ^= 16  # 24: bytes in a row, of which the third is changed
    (tmp_path / "codes").write_bytes(content)
    with pytest.raises(FileFormatError, match="each row must be an id and 12 bits"):
        from_pgvector_copy(tmp_path / "codes")


WRONG = {
    "no tab": b"5 0101\n",
    "no id": b"\t0101\n",
    "negative": b"-5\t0101\n",
    "huge": b"99999999999999999999\t0101\n",
    "beyond int64": b"9223372036854775808\t0101\n",
    "null": b"5\t\\N\n",
    "another length": b"5\t0101\n6\t010\n",
    "other digits": b"5\t0101\n6\t0121\n",
    "three columns": b"5\t0101\n6\t01\t1\n",
    "cut": b"5\t0101\n6\t010",
    "cut and longer": b"5\t0101\n6\t01010",
    "cut before the line end": b"5\t0101\n6\t0101",
    "equal ids": b"5\t0101\n5\t0101\n",
    "windows": b"5\t0101\r\n6\t0101\r\n",
    "a header": b"id\tcode\n5\t0101\n",
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_text_that_is_no_index_is_refused(tmp_path, content):
    (tmp_path / "codes").write_bytes(content)
    with pytest.raises(FileFormatError, match="codes"):
        from_pgvector_copy(tmp_path / "codes")


def test_the_line_at_fault_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbits.index.interop.postgres_copy._CHUNK", 10)
    lines = [b"%d\t0101\n" % i for i in range(50)]
    lines[33] = b"33\t01x1\n"
    (tmp_path / "codes").write_bytes(b"".join(lines))
    with pytest.raises(FileFormatError, match="line 34 has digits other than 0 and 1"):
        from_pgvector_copy(tmp_path / "codes")
    lines[33] = b"33\t01\n"
    (tmp_path / "codes").write_bytes(b"".join(lines))
    with pytest.raises(FileFormatError, match="line 34 must be an id, a tab, 4 bits"):
        from_pgvector_copy(tmp_path / "codes")


def test_psqls_end_mark_is_no_item(tmp_path):
    (tmp_path / "codes").write_bytes(b"5\t0101\n\\.\n")
    assert from_pgvector_copy(tmp_path / "codes").ids.tolist() == [5]


def test_arguments_are_checked(empty, tmp_path):
    with pytest.raises(InputError, match=r"there is no .*nowhere"):
        from_pgvector_copy(tmp_path / "nowhere")
    with pytest.raises(InputError, match="names in SQL must be text that is not empty, got ''"):
        pgvector_schema("", 8)
    with pytest.raises(
        InputError, match=r"names in SQL must be text that is not empty, got 'a.x00"
    ):
        pgvector_query("a\0", 8)
    with pytest.raises(InputError, match="names in SQL must have at most 63 bytes"):
        pgvector_query("ü" * 32, 8)
    with pytest.raises(InputError, match="index must be one of hnsw"):
        pgvector_schema("codes", 8, index="btree")
    with pytest.raises(InputError, match="n_bits must be an integer"):
        pgvector_schema("codes", "8); DROP TABLE x; --")
    with pytest.raises(InputError, match="k must be an integer >= 1"):
        pgvector_query("codes", "1; DROP TABLE x")
    with pytest.raises(InputError, match="n_bits must be given with packed bytes"):
        pgvector_bits(np.zeros((1, 1), np.uint8))
    assert pgvector_bits(np.array([[0b10100000]], np.uint8), 3) == ["101"]
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match=r"must be a psycopg\.Connection, got NoneType None"):
        copy_to_postgres(empty, None, "codes")


# With a server


@pytest.mark.parametrize("n_bits", [8, 12, 64, 128])
def test_a_table_comes_back_whole_and_orders_items_as_we_do(stock, connection, n_bits):
    mine = stock(n_bits)
    connection.execute(pgvector_schema("codes", n_bits, index=None))
    copy_to_postgres(mine.index, connection, "codes")
    assert stored(connection) == texts(mine)
    assert mine.is_in(from_postgres(connection, "codes"))
    distances, ids = mine.index.search(mine.queries, 25)
    query = pgvector_query("codes", 25)
    for row, bits in enumerate(pgvector_bits(mine.queries, n_bits)):
        found = connection.execute(query, (bits,)).fetchall()
        assert [i for i, _ in found] == ids[row].tolist()
        assert [distance for _, distance in found] == distances[row].tolist()


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_postgres_reads_our_files_and_we_read_its_files(stock, connection, tmp_path, binary):
    mine = stock(12)
    form = "binary" if binary else "text"
    connection.execute(pgvector_schema("codes", 12, index=None))
    to_pgvector_copy(mine.index, tmp_path / "ours", binary=binary)
    with connection.cursor().copy(f"COPY codes FROM STDIN WITH (FORMAT {form})") as copy:
        copy.write((tmp_path / "ours").read_bytes())
    assert stored(connection) == texts(mine)
    with connection.cursor().copy(f"COPY codes TO STDOUT WITH (FORMAT {form})") as copy:
        (tmp_path / "theirs").write_bytes(b"".join(map(bytes, copy)))
    assert mine.is_in(from_pgvector_copy(tmp_path / "theirs"))


def test_ids_of_two_bytes_are_read_from_a_table(connection):
    connection.execute("CREATE TABLE small (id smallint, code bit(3))")
    connection.execute("INSERT INTO small VALUES (7, B'101')")
    assert pgvector_bits(from_postgres(connection, "small").codes([7])) == ["101"]


def test_ids_of_four_bytes_are_read(connection, tmp_path):
    connection.execute("CREATE TABLE small (id int, code bit(12))")
    connection.execute("INSERT INTO small VALUES (7, B'101010101010'), (3, B'000000000001')")
    with connection.cursor().copy("COPY small TO STDOUT WITH (FORMAT binary)") as copy:
        (tmp_path / "file").write_bytes(b"".join(map(bytes, copy)))
    for back in (from_pgvector_copy(tmp_path / "file"), from_postgres(connection, "small")):
        assert pgvector_bits(back.codes([7, 3])) == ["101010101010", "000000000001"]


def test_insert_statements_say_the_same(stock, connection, tmp_path, monkeypatch):
    monkeypatch.setattr("rankbits.index.interop.pgvector._INSERTED", 100)
    mine = stock(12)
    connection.execute(pgvector_schema("codes", 12, index=None))
    to_pgvector_sql(mine.index, tmp_path / "codes.sql", "codes")
    connection.execute((tmp_path / "codes.sql").read_text())
    assert stored(connection) == texts(mine)


@pytest.mark.parametrize("name", [*NAMES, ("public", 'a "b"')])
def test_any_name_is_a_name_and_nothing_else(stock, connection, tmp_path, name):
    mine = stock(8, n=20)
    columns = {"id_column": 'i"d; %s', "code_column": "co'de --"}
    connection.execute("CREATE TABLE x ()")
    connection.execute(pgvector_schema(name, 8, **columns))
    copy_to_postgres(mine.index, connection, name, **columns)
    assert mine.is_in(from_postgres(connection, name, **columns))
    mine.index.upsert(mine.queries[:1], [2**50])
    mine.items[2**50] = np.unpackbits(mine.queries[0])
    added = HammingIndex(8)
    added.add(mine.queries[:1], [2**50])
    to_pgvector_sql(added, tmp_path / "codes.sql", name, **columns)
    connection.execute((tmp_path / "codes.sql").read_text())
    assert mine.is_in(from_postgres(connection, name, **columns))
    found = connection.execute(
        pgvector_query(name, 3, **columns), pgvector_bits(mine.queries[:1], 8)
    )
    assert [i for i, _ in found] == mine.index.search(mine.queries[:1], 3)[1][0].tolist()
    numbered = pgvector_query(name, 3, placeholder="$1", **columns)
    connection.execute(f"PREPARE found (bit(8)) AS {numbered}")
    connection.execute("DEALLOCATE found")
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    last = name if isinstance(name, str) else name[1]
    assert sorted(row[0] for row in tables) == sorted(["x", last])


def test_pgvectors_own_index_serves_the_query(stock, connection):
    mine = stock(64)
    connection.execute(pgvector_schema("codes", 64))
    copy_to_postgres(mine.index, connection, "codes")
    connection.execute("SET LOCAL enable_seqscan = off")
    connection.execute("SET LOCAL hnsw.ef_search = 400")
    query, bits = pgvector_query("codes", 5), pgvector_bits(mine.queries[:1], 64)
    plan = "\n".join(row[0] for row in connection.execute("EXPLAIN " + query, bits))
    assert "codes_code_idx" in plan
    found = connection.execute(query, bits).fetchall()
    assert [d for _, d in found] == mine.index.search(mine.queries[:1], 5)[0][0].tolist()


def test_an_empty_table_gives_an_empty_index_of_its_bits(empty, connection):
    connection.execute(pgvector_schema("codes", 16))
    copy_to_postgres(empty, connection, "codes")
    back = from_postgres(connection, "codes", kind="scan")
    assert (len(back), back.n_bits, back.kind) == (0, 16, "scan")


def test_tables_that_do_not_fit_are_refused_before_anything_is_sent(stock, connection):
    connection.execute(pgvector_schema("codes", 16))
    connection.execute("CREATE TABLE others (id bigint, code text, bits bit varying)")
    with pytest.raises(
        InputError, match="index must have 16 bits as the column 'code' has, got 64"
    ):
        copy_to_postgres(stock(64).index, connection, "codes")
    with pytest.raises(
        InputError, match=r"'nowhere' with a column 'code' does not exist; create it"
    ):
        from_postgres(connection, "nowhere")
    with pytest.raises(InputError, match=r"must have 'code' as bit\(n\), it is text"):
        from_postgres(connection, "others")
    with pytest.raises(InputError, match=r"must have 'bits' as bit\(n\), it is bit varying"):
        from_postgres(connection, "others", code_column="bits")


def test_rows_that_are_no_items_are_refused_and_the_connection_goes_on(connection):
    connection.execute("CREATE TABLE codes (id bigint, code bit(8))")
    for row, message in [
        ("NULL, B'00000000'", "damaged or has nulls"),
        ("5, NULL", "damaged or has nulls"),
        ("-5, B'00000000'", "cannot be read .* got -5"),
    ]:
        with connection.transaction(force_rollback=True):
            connection.execute(f"INSERT INTO codes VALUES (1, B'00000001'), ({row})")
            with pytest.raises(InputError, match=message):
                from_postgres(connection, "codes")
    assert len(from_postgres(connection, "codes")) == 0
    connection.execute("INSERT INTO codes VALUES (1, NULL)")
    with pytest.raises(InputError, match=r"must hold rows of an id, .* the first row does not"):
        from_postgres(connection, "codes")
