s/type="pages" visible="yes" title=""/type="pages" visible="yes" title="Guides"/
s/type="modules" visible="yes" title=""/type="modules" visible="yes" title="API by topic"/
s/type="classes" visible="yes" title=""/type="classes" visible="yes" title="Classes"/
s/type="namespaces" visible="yes"/type="namespaces" visible="no"/
s/type="examples" visible="yes"/type="examples" visible="no"/
# The description, with the equation, comes before the lists of members.
/<detaileddescription/d
s/<briefdescription visible="yes"\/>/<detaileddescription title=""\/>/
