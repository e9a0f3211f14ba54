# A page of Markdown as Doxygen shall read it: links into the repository lead nowhere from the build folder, so that their text remains.
s/!?\[([^]]*)\]\([^)]*\)/\1/g
