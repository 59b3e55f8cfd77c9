"""Other names by which a search should find models, machines and frameworks: those of the vocabulary."""

from __future__ import annotations

from collections import defaultdict

from ipu_results.schema.vocabulary import load_vocabulary, normalise_name


def build_aliases() -> dict[str, dict[str, str]]:
    """Collect other names by column and canonical name, normalised and separated by blanks."""
    vocabulary = load_vocabulary()
    printed = {
        "platform": {name: entry["platform"] for name, entry in vocabulary.platforms.items()},
        "model": {name: entry["model"] for name, entry in vocabulary.models.items()},
        "framework": vocabulary.frameworks,
    }
    aliases = {}
    for column, canonical in printed.items():
        names = defaultdict(list)
        for name in sorted(canonical):
            if name != normalise_name(canonical[name]):
                names[canonical[name]].append(name)
        aliases[column] = {name: " ".join(words) for name, words in sorted(names.items())}
    return aliases
