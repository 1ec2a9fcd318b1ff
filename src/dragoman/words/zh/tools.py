"""The library: registering, discovering and calling tools. What the model is told is not here."""

TEXTS = {
    # --- tools of installed packages
    "tools.not_installed": "无法加载工具 {name}：{reason}",
    "tools.not_a_tool": "{name} 是 {kind}；工具是函数，或具有 spec、intend 和 run 的对象",
    # --- what the model may ask the user for
    "tools.outside_remedy": "请用户允许您也在该目录中工作",
    # --- commands that ran with the workspace read-only
    "tools.refused_to_write": "它在工作区只读的情况下运行过，需要写入：{line}",
    # --- registering tools
    "tools.unknown_builtin": "没有叫 {name!r} 的内置工具；可选 {known}",
    "tools.not_a_declaration": '这不是工具声明：{given}；请写 {{"name": …, "description": …, "parameters": {{…}}}}，或使用 ToolSpec',
    "tools.search_is_no_tool": "{given} 是服务自带的搜索，不是可以声明的工具；请改写为 search='grounding'，"
    "单个请求则用 settings=Settings(search=True)",
    "tools.wrong_name": "无效的工具名称 {name!r}：请用 1–64 个字母、数字、_ 或 -，以字母或 _ 开头",
    "tools.name_taken": "已有叫 {name!r} 的工具；请换个名称，或传入 replace=True",
    "tools.parameters_not_json": "工具 {name!r} 的参数不是 JSON：{reason}",
    "tools.parameters_not_a_schema": "工具 {name!r} 的参数必须是 JSON Schema 对象",
    # --- functions as tools
    "tools.function_without_name": "{function} 没有可作工具名的名称；请传入 name=…",
    "tools.function_signature": "无法读取 {name} 的签名（{reason}）；请用您自己的函数包装它",
    "tools.schema_not_object": "{name} 的 parameters 不是对象的 JSON Schema：{given}；请给出 {{'type': 'object', 'properties': {{…}}}}",
    "tools.schema_not_json": "{name} 的 parameters 无法写成 JSON：{reason}",
    "tools.schema_unknown": "{name} 的 parameters 中有 {fields}，但函数不接受它；请加上该参数，或接受 **arguments",
    "tools.schema_missing": "{name} 需要 {fields}，但它的 parameters 没有要求它；请列在 required 中，或给它默认值",
    "tools.function_variadic": "{name} 接受 *{parameter}，但模型需要知道每个参数的名称；请用您自己的函数包装它",
    "tools.function_parameters": "无法向模型描述 {name} 的参数：{reason}",
    "tools.function_annotations": "无法读取 {name} 的注解：{reason}",
    "tools.function_timeout": "{name} 的 timeout_s 是 {given!r}；请给出大于 0 的秒数",
    "tools.function_contexts": "{name} 两次接受 ToolContext（{parameters}）；一个就够了",
    "tools.media_outside": "它返回了图片或文件，而在运行之外没有可保存它的会话",
    # --- tools of another program
    "tools.discovery_two_commands": "发现工具需要两个命令：一个列出工具，一个调用工具",
    "tools.discovery_not_run": "无法运行发现工具的命令 {command!r}：{reason}",
    "tools.discovery_failed": "发现工具的命令 {command!r} 失败：{reason}{detail}",
    "tools.discovery_exit_code": "它以退出码 {code} 结束",
    "tools.discovery_too_long": "发现工具的命令 {command!r} 打印了超过 {most:,} 字节",
    "tools.discovery_not_json": "发现工具的命令 {command!r} 没有打印 JSON（{reason}）；它必须打印声明的列表，其他内容应写到 stderr。"
    "其输出开头为：{output!r}",
    "tools.discovery_bad_tool": "发现工具的命令 {command!r} 声明了无法使用的工具：{reason}",
    "tools.discovery_no_name": "发现工具的命令 {command!r} 声明了没有名称的内容：{declaration}",
    "tools.discovery_not_a_schema": "发现工具的命令 {command!r} 声明的 {name!r} 的参数不是 JSON Schema 对象",
    # --- searching the web
    "tools.search_refused": "服务拒绝回答：{reason}",
    "tools.searxng_timeout": "{seconds:.0f} 秒内没有应答",
    "tools.searxng_no_json": "服务器不提供 JSON；请在其设置的 `search.formats` 中加入 `json`",
    "tools.searxng_failed": "服务器没有进行搜索",
    "tools.searxng_not_json": "服务器的应答不是 JSON",
    "tools.searxng_too_long": "应答超过 {most} MB",
    # --- what each does, for people: the model has its own description
    "tools.about_read_file": "读取文本文件、图片或 PDF",
    "tools.about_read_many_files": "一次读取多个文本文件",
    "tools.about_list_directory": "列出目录内容",
    "tools.about_glob": "按名称查找文件，最新的在前",
    "tools.about_grep": "用正则表达式搜索文件内容",
    "tools.about_edit": "替换已读文件中的文本",
    "tools.about_write_file": "写入整个文件",
    "tools.about_run_shell": "运行命令",
    "tools.about_shell_output": "读取后台命令的输出",
    "tools.about_todo": "为较长的任务记录步骤清单",
    "tools.about_ask_user": "向您提问并等待回答",
    "tools.about_save_memory": "记住一个事实，供以后所有会话使用",
    "tools.about_google_web_search": "搜索网络",
    "tools.about_web_fetch": "获取公开网页",
    "tools.about_task": "让子代理完成一部分工作",
    "tools.about_activate_skill": "读取技能的说明",
    "tools.not_looked_at": "命令已经结束，但无法查看它留下了什么：{reason}",
    "tools.listens": "{id} 在沙箱内监听端口 {port}",
}
