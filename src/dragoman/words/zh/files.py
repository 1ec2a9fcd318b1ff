"""The library: files that were found in a folder and cannot be read. Each is the end of a sentence."""

TEXTS = {
    "files.is_a_device": "它是设备，不是文件",
    "files.is_a_directory": "它是一个目录",
    "files.is_a_link": "它是符号链接，这里不会跟随",
    "files.is_a_pipe": "它是命名管道（FIFO），不是文件",
    "files.is_a_socket": "它是套接字，不是文件",
    "files.is_not_utf8": "它不是 UTF-8 文本（第 {position} 字节）",
    "files.is_too_large": "它超过 {most} 字节",
    "files.no_valid_name": "文件不能使用这个名称",
    "files.would_wait": "读取它需要等待另一个程序",
}
