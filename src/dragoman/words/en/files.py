"""The library: files that were found in a folder and cannot be read. Each is the end of a sentence."""

TEXTS = {
    "files.is_a_device": "it is a device, not a file",
    "files.is_a_directory": "it is a directory",
    "files.is_a_link": "it is a symbolic link, which is not followed here",
    "files.is_a_pipe": "it is a named pipe (FIFO), not a file",
    "files.is_a_socket": "it is a socket, not a file",
    "files.is_not_utf8": "it is not UTF-8 text (byte {position})",
    "files.is_too_large": "it is larger than {most} bytes",
    "files.no_valid_name": "no file can have this name",
    "files.would_wait": "reading it would have to wait for another program",
}
