"""Ask folders of documents: find their files, read them, rank their passages, answer, and show where from."""

from assay.apps.documents.answering import Answered, answered
from assay.apps.documents.library import Document, Library
from assay.apps.documents.page import page
from assay.apps.documents.passages import Passage
from assay.apps.documents.reading import NoText, Text, read
from assay.apps.documents.retrievers import BM25, RETRIEVERS, Filter, Retriever, SentenceEncoder, chosen_passages
from assay.apps.documents.walking import walk

__all__ = [
    "BM25",
    "RETRIEVERS",
    "Answered",
    "Document",
    "Filter",
    "Library",
    "NoText",
    "Passage",
    "Retriever",
    "SentenceEncoder",
    "Text",
    "answered",
    "chosen_passages",
    "page",
    "read",
    "walk",
]
