"""The library: connections, proxies, certificates."""

TEXTS = {
    "http.or": " 或 ",
    "http.too_many_open": "此进程中打开的文件和连接太多；请同时运行更少的 agent，或允许更多（ulimit -n）",
    # --- no answer came
    "http.proxy_login": "代理 {proxy} 拒绝连接（{reason}）；它需要用户名和密码：{scheme}://user:password@host:port",
    "http.proxy_wrong_login": "代理 {proxy} 拒绝连接（用户名或密码错误）；请在其地址中写入正确的：socks5://user:password@host:port",
    "http.proxy_no_login": "代理 {proxy} 拒绝连接（它不接受用户名和密码）；请从其地址中去掉",
    "http.proxy_needs_login": "它不允许所有人使用",
    "http.proxy_cannot_connect": "代理 {proxy} 无法连接到 {host}：{reason}；请检查代理设置",
    "http.proxy_not_socks": "代理 {proxy} 没有以 SOCKS 5 应答；请检查代理设置",
    "http.no_tls": "无法与 {where} 建立 TLS 连接：{reason}；如果它是普通的 HTTP 服务器，请把地址写成 http:// 开头",
    "http.connect_timeout": "无法连接 {where}：{seconds:g} 秒内没有建立连接；请检查地址和网络",
    "http.hung_up": "{where} 没有应答就关闭了连接；请再试一次",
    "http.not_http": "{where} 没有以 HTTP 应答；请检查地址和端口是否为该 API 的",
    "http.unknown_host": "找不到 {where}：无法解析该名称；请检查拼写以及是否联网",
    "http.refused": "无法连接 {where}：连接被拒绝；服务器在运行吗？请启动它，或检查地址",
    "http.broken": "{where} 中断了连接；请再试一次",
    "http.no_route": "无法连接 {where}：没有路由；您联网了吗？",
    "http.unreachable": "无法连接 {where}：{reason}；请检查地址和网络",
    # --- certificates
    "http.certificate_other_host": "证书不是 {where} 的；请检查地址，以及中间是否有代理",
    "http.certificate_dates": "{where} 的证书不在有效期内（{reason}）；请检查本机的时钟",
    "http.certificate_untrusted": "证书不受信任：{where}（{reason}）；如果您的网络有自己的证书颁发机构，"
    "请把 SSL_CERT_FILE 设为含有其证书的文件",
    "http.certificates_unreadable": "无法读取证书：{reason}",
    "http.certificates_named_unreadable": "无法读取 {names} 指定的证书：{reason}；请检查路径",
    "http.no_certificates": "此系统在 Python 查找的位置没有证书；请把 SSL_CERT_FILE 设为受信任证书的文件",
    # --- an answer that is cut or damaged
    "http.wrong_compression": "{host} 发送的正文并非按其声明的方式压缩；可能被中间的代理损坏",
    "http.garbled": "{where} 的应答在 {bytes:,} 字节之后出现乱码；请再试一次",
    "http.cut_short": "{where} 的应答在 {bytes:,} 字节之后被截断；请再试一次",
    "http.unknown_encoding": "{host} 以未请求的编码 {encoding!r} 发送正文",
    "http.event_too_long": "服务发送了超过 {most} 字节的事件",
    # --- what cannot be sent
    "http.header_character": "标头 {name!r} 含有标头不允许的字符；请去掉它",
    "http.not_sent": "发往 {host} 的请求不是有效的 HTTP，没有发送；请检查其地址和标头",
    "http.not_an_address": "{address!r} 不是服务器的地址；它应形如 https://api.example.com",
    "http.proxy_kind": "不支持 {scheme}:// 类型的代理；请用 {kinds}{hint}",
    "http.proxy_kind_socks": "；要使用 SOCKS，请在您的 Dragoman 克隆中运行 pip install '.[httpx]'，并以 http=\"httpx\" 连接",
    "http.not_a_proxy": "{address!r} 不是代理的地址；它应形如 http://proxy.example.com:8080",
    "http.httpx_missing": "http=\"httpx\" 还需要一个软件包：请在您的 Dragoman 克隆中运行 pip install '.[httpx]'",
}
