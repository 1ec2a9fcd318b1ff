"""The sentences in Chinese, as far as they are translated; the others are said in English."""
