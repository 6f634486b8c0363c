#!/usr/bin/env python3
"""The multi-hop questions as lines: passages for `percept ingest`, questions for benches/multihop.rs.

    multihop_lines.py DATA_DIR OUT_DIR

In: musique_openie.json (passages with the entities and triples a language model extracted), musique_train.json (questions
with their supporting passages), in the format of HippoRAG. Out: OUT_DIR/passages.jsonl and OUT_DIR/questions.jsonl.

A passage is a note: title and text are its content, each triple is a fact, its title and what was extracted without a triple
are facts of being there (`mentions`). Nothing else is known to percept: no types, no times.
"""

import json
import pathlib
import sys

# Any day would do: one passage a minute.
START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
# What percept takes as a name, in bytes.
NAME_BYTES_MAX = 512


def facts_of(document):
    """Triples first; then what no triple names."""
    facts, named = [], set()
    for triple in document["extracted_triples"]:
        if len(triple) != 3 or not all(isinstance(part, str) and is_name(part) for part in triple):
            continue
        facts.append(dict(zip(("subject", "relation", "object"), triple)))
        named.update((triple[0], triple[2]))
    title = document["title"]
    for entity in [title, *document["extracted_entities"]]:
        if isinstance(entity, str) and is_name(entity) and entity not in named:
            facts.append({"subject": entity, "relation": "mentions", "object": entity})
            named.add(entity)
    return facts[:1000]


def is_name(text):
    return text.strip() != "" and len(text.encode()) <= NAME_BYTES_MAX


def main():
    data, out = map(pathlib.Path, sys.argv[1:3])
    documents = json.loads((data / "musique_openie.json").read_text())["docs"]
    questions = json.loads((data / "musique_train.json").read_text())
    out.mkdir(parents=True, exist_ok=True)
    ids = {}
    with open(out / "passages.jsonl", "w") as lines:
        for number, document in enumerate(documents):
            content = f'{document["title"]}\n{document["text"]}'
            ids.setdefault(content, str(number))
            line = {
                "id": str(number),
                "tool_name": "note",
                "modality": "text",
                "content": content,
                "timestamp": START_MS + number * MINUTE_MS,
                "session_id": "multihop",
                "facts": facts_of(document),
            }
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    with open(out / "questions.jsonl", "w") as lines:
        for question in questions:
            supporting = [
                ids[f'{paragraph["title"]}\n{paragraph["paragraph_text"]}']
                for paragraph in question["paragraphs"]
                if paragraph["is_supporting"]
            ]
            line = {"question": question["question"], "supporting": sorted(set(supporting), key=int)}
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")


main()
